package load

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"sandwich/runtime/sched"
	"sandwich/tuner/measure/load"
	"sandwich/tuner/replay"
)

// instant is a target that answers at once.
type instant struct{}

func (instant) Vocab() int { return 100 }

func (instant) Begin() {}

func (instant) End(*load.Run) {}

func (instant) Ask(_ context.Context, _ []int32, r replay.Request, token func()) (load.Stood, error) {
	for range r.Output {
		token()
	}
	return load.Stood{}, nil
}

// TestGoodputOfFewArrivals checks that rates at which no reactive request arrives do not count as
// missing the service level.
func TestGoodputOfFewArrivals(t *testing.T) {
	f := loadFlags{rates: [2]float64{sched.Reactive: 1e5}, sets: [2]string{"mixed", "mixed"}, during: time.Second,
		seed: 1, goodput: 6, slo: replay.SLO{TTFT: time.Hour, TPOT: time.Hour}}
	f.sizes.Context = 64
	all, err := f.random(1)
	if err != nil {
		t.Fatal(err)
	}
	f.during = 2 * all[0].At // so that nothing arrives below half of the rate
	if few, err := f.random(0.45); err != nil || len(few) > 0 {
		t.Fatalf("%d requests arrive at 0.45 of the rate, %v", len(few), err)
	}
	if got, err := f.bisect(t.Context(), instant{}); err != nil || got <= 0 {
		t.Errorf("goodput %v, %v", got, err)
	}
}

// TestRepeatedPolicies checks that a policy that is given twice is measured once.
func TestRepeatedPolicies(t *testing.T) {
	var f loadFlags
	f.addEngine(&cobra.Command{})
	f.policies, f.during = []string{"fcfs", "sandwich", "fcfs"}, time.Second
	if err := f.check(); err != nil || !slices.Equal(f.policies, []string{"fcfs", "sandwich"}) {
		t.Errorf("policies %v, %v", f.policies, err)
	}
}
