package arms_test

import (
	"errors"
	"testing"
	"time"

	"sandwich/plans"
	"sandwich/runtime/phase"
	"sandwich/tuner/arms"
	"sandwich/tuner/partition"
	"sandwich/tuner/rig"
	"sandwich/tuner/run"
)

// TestRaceWithoutTimeIsUndecided checks that a race whose arms did not run is undecided, in the
// default plan's partition and in another.
func TestRaceWithoutTimeIsUndecided(t *testing.T) {
	home := &partition.Partition{Failed: run.ErrNoTime}
	for _, on := range []*partition.Partition{home, {Name: "2 ranks", Failed: run.ErrNoTime}} {
		r := &arms.Race{Run: run.New(run.Options{Budget: time.Hour}), Loader: new(partition.Loader), Home: home,
			Limit: 1, Tests: []rig.Test{{Phase: phase.Prefill, N: 1, Times: 1}}}
		for _, name := range []string{"one", "another"} {
			r.Add(name, on, [phase.Count]*plans.Phase{}, false, false)
		}
		if err := r.Measure(t.Context(), 1, 1); !errors.Is(err, arms.ErrUndecided) {
			t.Errorf("partition %q: %v", on.Name, err)
		}
	}
}
