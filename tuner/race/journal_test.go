package race

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"sandwich/tuner/trials"
)

// journaled is a simulated machine whose samples are kept in a journal.
type journaled struct {
	*track
	rec *trials.Recorder
}

func (j *journaled) Sample(ctx context.Context, arm, test int) (Timing, error) {
	seconds, cost, err := j.rec.Forward(fmt.Sprintf("forward %d by %s", test, j.arms[arm].Name), func() (float64,
		error) {
		t, err := j.track.Sample(ctx, arm, test)
		return t.Seconds, err
	})
	return Timing{Seconds: seconds, Cost: cost}, err
}

// TestResumedRaceRepeatsNoSample kills a race at any sample and checks that the resumed race
// repeats no finished sample and gives the same result.
func TestResumedRaceRepeatsNoSample(t *testing.T) {
	arms := lineup(4)
	even := func(arm, _ int) float64 { return 1 + float64(arm)/50 }
	for _, kill := range []int{1, 2, 9, 30, 55, 80} {
		path := filepath.Join(t.TempDir(), "x.journal")
		run := func(k *track, resume bool) ([]Standing, *trials.Recorder, error) {
			j, err := trials.OpenJournal(path, trials.Key{Build: "b"}, resume)
			if err != nil {
				t.Fatal(err)
			}
			defer j.Close()
			rec := trials.NewRecorder(j, time.Now)
			out, err := Run(t.Context(), &journaled{k, rec}, raceOptions(arms))
			return out, rec, err
		}
		first := newTrack(1, arms, even)
		first.fail = kill
		if _, _, err := run(first, false); !errors.Is(err, errBroken) {
			t.Fatal(err)
		}
		second := newTrack(2, arms, even)
		out, rec, err := run(second, true)
		if err != nil {
			t.Fatal(err)
		}
		samples := 0
		for i := range out {
			samples += 2 * len(out[i].Laps)
		}
		if rec.Hits() != kill-1 || len(second.log) != samples-(kill-1) {
			t.Errorf("killed at %d: %d came from the journal, %d ran of %d", kill, rec.Hits(), len(second.log), samples)
		}
		if second.log[0] != first.log[kill-1] {
			t.Errorf("killed at %d, when arm %d ran: it went on with arm %d", kill, first.log[kill-1], second.log[0])
		}
	}
}
