package compare

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sandwich/plans"
	"sandwich/profiles"
	"sandwich/tuner/trials"
)

// TestRecord records a small grid of this machine, reads it, continues it, and checks that another
// machine is rejected and that every choice of the default heuristic is in it.
func TestRecord(t *testing.T) {
	here, err := profiles.Live()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := here.Save(filepath.Join(dir, HostFile)); err != nil {
		t.Fatal(err)
	}
	recorded := map[string]int{}
	o := RecordOptions{Here: here, Dir: dir, Weights: []plans.WeightKey{{N: 96, K: 64, Type: "q8_0"}},
		Options: Options{MaxM: 16, HeldOut: []int{3, 5, 16}, Strategies: []string{"exhaustive"},
			PerM: 3 * time.Second},
		Recorded: func(name string, rows []Row) error {
			recorded[name] += len(rows)
			return nil
		}}
	o.Profile, o.Threads, o.Effort, o.Run.Build = here, 1, "quick", "a"
	if err := Record(context.Background(), o); err != nil {
		t.Fatal(err)
	}
	const name = "q8_0-96x64"
	if recorded[name] != 2 {
		t.Errorf("%v: not the default and one search", recorded)
	}
	if _, err := os.Stat(filepath.Join(dir, name+".jsonl")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("an unpacked journal stays: %v", err)
	}
	rows, err := JudgeHeuristic(dir)
	if err != nil || len(rows) == 0 {
		t.Fatalf("%d rows: %v", len(rows), err)
	}
	for _, r := range rows {
		if r.Runs != "again" && r.Runs != "interleaved" || r.Share <= 0 || r.Share > 1 {
			t.Errorf("m %d: %s reaches %g, timed %q", r.M, r.Choice, r.Share, r.Runs)
		}
	}
	if err := Record(context.Background(), o); err != nil || recorded[name] != 2 {
		t.Errorf("a grid that is whole: %v, %v", recorded, err)
	}
	o.Run.Build = "b"
	if err := Record(context.Background(), o); !errors.Is(err, trials.ErrJournal) || !strings.Contains(err.Error(),
		"build") {
		t.Errorf("a grid of another version: %v", err)
	}
	if o.Profile, err = profiles.Builtin(profiles.BuiltinNames()[0]); err != nil {
		t.Fatal(err)
	}
	if err := Record(context.Background(), o); !errors.Is(err, ErrGrid) {
		t.Errorf("a folder of another machine: %v", err)
	}
}
