// Package arms races configurations of any partition on the runtime that serves. All measured
// stages of a run use it: the choice of partitions, of sets of PUs, the finalists and the rerun.
//
// An Arm has what runs in each phase, on the workers or on a device. A new kind of arm adds a field
// to Arm, passes it on in Race.sample (see package rig for how an arm is compiled), takes part in
// its key, and is added to the finalists in finals.Race.
package arms

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"sandwich/plans"
	"sandwich/profiles"
	"sandwich/runtime/device"
	"sandwich/runtime/phase"
	"sandwich/runtime/pool"
	"sandwich/tuner/partition"
	"sandwich/tuner/race"
	"sandwich/tuner/ranking"
	"sandwich/tuner/rig"
	"sandwich/tuner/run"
)

// Bounds of the rounds in which arms are raced.
const (
	MinRounds = 3
	maxRounds = 15
)

// ErrUndecided is returned if the budget ended before every arm had one sample.
var ErrUndecided = errors.New("the budget was over before the arms could be compared")

// Arm is an arm of a race on this machine, with its result.
type Arm struct {
	race.Contender
	race.Standing
	On       *partition.Partition
	Phases   [phase.Count]*plans.Phase // what runs in each phase; nil for a phase that the race does not test
	Sets     [phase.Count]ranking.ActiveSet
	Unpinned bool

	Device   device.Device     // nil: the workers run both phases
	OnDevice [phase.Count]bool // the phases that the device runs
}

// key returns the journal key of what runs in a phase.
func (a *Arm) key(ph phase.Phase) string {
	name := a.Name
	if a.Partition != "" {
		name += " in " + a.Partition
	}
	key := fmt.Sprintf("%s, %s", name, profiles.Digest(a.Phases[ph]))
	if a.OnDevice[ph] {
		key += ", on a device"
	}
	return key
}

// DevicePartition returns the name of the partition of arms on a device. It differs from that of
// the cores, so that a device that fails ends only its own arms.
func DevicePartition(id string) string { return "device " + id }

// AddLike adds an arm that runs as another one does, and stays to the end of the race.
func (r *Race) AddLike(a *Arm) {
	b := r.Add(a.Name, a.On, a.Phases, a.Unpinned, true)
	b.Partition, b.Device, b.OnDevice = a.Partition, a.Device, a.OnDevice
}

// Race implements race.Runner with configurations of any partition. A partition is loaded when the
// journal lacks one of its samples.
type Race struct {
	Run    *run.Run
	Loader *partition.Loader
	Home   *partition.Partition // of the default plan
	Stage  string
	Limit  float64 // part of the budget at which the race stops
	Arms   []*Arm  // the first is the reference
	Tests  []rig.Test
	// Late returns arms of other partitions than the reference's, and the index before which they
	// are inserted. Measure calls it after the first rounds of the reference's partition; nil:
	// there are none.
	Late func(ctx context.Context) (at int, list []*Arm, err error)
}

// New returns a race without arms.
func New(r *run.Run, l *partition.Loader, stage string, limit float64) *Race {
	return &Race{Run: r, Loader: l, Home: l.Home(), Stage: stage, Limit: limit}
}

// Add adds an arm. stays keeps it to the end of the race, even if it is slow.
func (r *Race) Add(name string, on *partition.Partition, phases [phase.Count]*plans.Phase, unpinned, stays bool) *Arm {
	a := &Arm{Contender: race.Contender{Name: name, Partition: on.Name, Stays: stays}, On: on, Phases: phases,
		Unpinned: unpinned}
	r.Arms = append(r.Arms, a)
	return a
}

// Contenders returns the contenders of the arms, in order.
func (r *Race) Contenders() []race.Contender { return contenders(r.Arms) }

func contenders(list []*Arm) (out []race.Contender) {
	for _, a := range list {
		out = append(out, a.Contender)
	}
	return out
}

// join adds the arms of Late to those of the race.
func (r *Race) join(ctx context.Context) (race.Joined, error) {
	if r.Late == nil {
		return race.Joined{}, nil
	}
	began := r.Run.Now()
	at, list, err := r.Late(ctx)
	r.Arms = slices.Insert(r.Arms, at, list...)
	return race.Joined{At: at, Arms: contenders(list), Cost: r.Run.Now().Sub(began).Seconds()}, err
}

// Measure samples the arms interleaved until a part of the budget is used up. It runs the minimum
// number of rounds unless the limit of the race comes first. The error is ErrUndecided if an arm
// that shares the reference's partition has no complete round.
func (r *Race) Measure(ctx context.Context, end float64, keep int) error {
	r.Run.Say(r.Stage, "", true)
	out, err := race.Run(ctx, r, race.Options{Arms: r.Contenders(), Tests: len(r.Tests), Least: MinRounds,
		Most: maxRounds, Budget: r.Run.Until(end).Seconds(), Limit: r.Run.Until(r.Limit).Seconds(), Keep: keep,
		Seed: r.Run.Seed, Join: r.join, Said: func(arm, test int, seconds float64) {
			x := r.Tests[test]
			r.Run.Say(r.Stage, fmt.Sprintf("%s: %s, %s %.4g tokens/s", x.Phase, r.Arms[arm].Name, x.Name(),
				float64(x.N)/seconds), false)
		}})
	if err != nil && !errors.Is(err, run.ErrNoTime) {
		return err
	}
	undecided := false
	for i, a := range r.Arms {
		a.Standing = out[i]
		switch {
		case len(a.Laps) > 0 || a.Lost != "":
		case a.Partition == r.Arms[0].Partition:
			undecided = true
		default:
			a.Lost = "the budget was over before it ran"
		}
	}
	if undecided {
		return ErrUndecided
	}
	return nil
}

// Sample implements race.Runner. It takes the samples of an earlier run from the journal.
func (r *Race) Sample(ctx context.Context, arm, test int) (race.Timing, error) {
	a, x := r.Arms[arm], r.Tests[test]
	seconds, cost, err := r.Run.Recorder.Forward(
		fmt.Sprintf("%s forward %s x %d by %s", x.Phase, x.Name(), x.Times, a.key(x.Phase)),
		func() (float64, error) { return r.sample(ctx, a, x) })
	return race.Timing{Seconds: seconds, Cost: cost}, err
}

var errNoRig = errors.New("whole forwards cannot be run")

// Probe takes one sample of a test, after the arm has run once to warm up. It returns run.ErrNoTime
// if that takes longer than the limit.
func (r *Race) Probe(ctx context.Context, a *Arm, x rig.Test, limit time.Duration) (seconds float64, err error) {
	return r.sampleWithin(ctx, a, x, min(limit, r.Run.Until(r.Limit)))
}

// sample takes one sample of a test, after the arm has run once to warm up.
func (r *Race) sample(ctx context.Context, a *Arm, x rig.Test) (seconds float64, err error) {
	return r.sampleWithin(ctx, a, x, r.Run.Until(r.Limit))
}

// deadline stops a forward when the clock of the budget reaches a point in time.
type deadline struct {
	now func() time.Time
	end time.Time
}

// Passed implements exec.Gate.
func (d deadline) Passed(int) bool { return !d.now().Before(d.end) }

// sampleWithin is sample with a limit of the time.
func (r *Race) sampleWithin(ctx context.Context, a *Arm, x rig.Test, limit time.Duration) (seconds float64, err error) {
	end := deadline{r.Run.Now, r.Run.Now().Add(limit)}
	if err := r.Loader.Open(ctx, a.On); err != nil {
		return 0, err
	}
	if a.On.Rig == nil {
		return 0, errNoRig
	}
	what := rig.Arm{Key: a.key(x.Phase), Phase: a.Phases[x.Phase], Unpinned: a.Unpinned}
	if a.OnDevice[x.Phase] {
		what.Device = a.Device
	}
	a.On.Workers.Pool.Lead(func(l *pool.Leader) { seconds, err = a.On.Rig.Sample(ctx, l, what, x, end) })
	if err != nil && what.Device != nil && !errors.Is(err, run.ErrNoTime) && ctx.Err() == nil {
		err = &race.Absent{Why: err.Error()}
	}
	return seconds, err
}
