package measure

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"sandwich/runtime/counters"
	"sandwich/runtime/engine"
	"sandwich/runtime/kvcache"
	"sandwich/runtime/model"
	"sandwich/runtime/pool"
)

// RooflineArm is a model loaded under one instruction set, on a runner with room for Positions.
type RooflineArm struct {
	Runner  *engine.Runner
	Options RooflineOptions
}

// Energy is what forwards took of the whole package, in joules by their rows, all arms alike.
type Energy struct {
	Joules  map[int]float64 // of one forward
	Missing error           // why there are none; nil where Joules hold
}

// Roofline predicts and measures the ops of forwards, by arm, and says what predictions rest on.
// Forwards and their anchors, of all arms, run one at a time in turn: what a machine reads and
// computes changes within seconds.
func Roofline(ctx context.Context, arms []RooflineArm) (rows [][]RooflineRow, rests []string, e Energy, err error) {
	for i := range arms {
		if arms[i].Options.Placer.Plan.TP() > 1 {
			return nil, nil, e, errors.New("ops of several ranks at once are not predicted one by one: leave out --tp")
		}
	}
	list, err := rooflineRuns(arms)
	if err != nil {
		return nil, nil, e, err
	}
	for rep := range arms[0].Options.Reps {
		for _, run := range list {
			if err := run.turn(ctx, rep == 0); err != nil {
				return nil, nil, e, err
			}
		}
	}
	rows, e.Joules = make([][]RooflineRow, len(arms)), map[int]float64{}
	for i := range arms {
		own, said, err := predicted(&arms[i], list)
		if err != nil {
			return nil, nil, e, err
		}
		rows[i], rests = own, append(rests, said...)
	}
	for _, m := range arms[0].Options.Rows {
		e.add(m, list)
	}
	return rows, rests, e, nil
}

// add notes the joules of a forward of m rows.
func (e *Energy) add(m int, list []*rooflineRun) {
	joules, forwards := 0.0, 0
	for _, run := range list {
		if run.m != m || run.anchor {
			continue
		}
		joules, forwards = joules+run.joules, forwards+run.forwards
		if run.unknown != nil {
			e.Missing = run.unknown
		}
	}
	if e.Joules != nil {
		e.Joules[m] = joules / float64(forwards)
	}
	if e.Missing != nil {
		e.Joules = nil
	}
}

// rooflineRuns are the forwards of all arms and their anchors, from the fewest rows, each behind
// the same one of another arm.
func rooflineRuns(arms []RooflineArm) (list []*rooflineRun, err error) {
	for i := range arms {
		for k, m := range slices.Concat(arms[i].Options.Rows, arms[i].Options.anchors()) {
			run, err := newRooflineRun(&arms[i], m)
			if err != nil {
				return nil, err
			}
			run.anchor = k >= len(arms[i].Options.Rows)
			list = append(list, run)
		}
	}
	slices.SortStableFunc(list, func(a, b *rooflineRun) int { return cmp.Compare(a.m, b.m) })
	return list, nil
}

// predicted are the forwards of an arm with what was measured, by its anchors.
func predicted(arm *RooflineArm, list []*rooflineRun) (rows []RooflineRow, rests []string, err error) {
	forwards := map[int]*anchored{}
	for _, run := range list {
		if run.arm == arm && run.anchor {
			forwards[run.m] = run.anchored()
		}
	}
	o := &arm.Options
	by := o.anchorsBy(forwards)
	for _, run := range list {
		if run.arm != arm || run.anchor {
			continue
		}
		own, _, err := o.predict(run.m, by)
		if err != nil {
			return nil, nil, err
		}
		for i := range own {
			own[i].measured(run.samples[i])
		}
		rows = append(rows, own...)
	}
	return rows, by.sentences(o.pus(model.Phases[0])), nil
}

// warmed is up to how many rows of a forward another like it runs before each that counts, since
// its activations would come from memory otherwise: other forwards ran since. A longer prompt's are
// a small part of what it reads.
const warmed = 64

// warmsUp says whether a forward is run before the one that counts.
func warmsUp(m int, first bool) bool { return first || m <= warmed }

// RooflineForwards is how many forwards Roofline runs, each of which calls Step.
func RooflineForwards(arms []RooflineArm) (n int) {
	for i := range arms {
		o := &arms[i].Options
		for _, m := range slices.Concat(o.Rows, o.anchors()) {
			for rep := range o.Reps {
				if n++; warmsUp(m, rep == 0) {
					n++
				}
			}
		}
	}
	return n
}

// rooflineRun is a forward of one number of rows on one arm.
type rooflineRun struct {
	arm      *RooflineArm
	m        int
	anchor   bool // others are predicted by it
	works    []model.OpWork
	at       []int // by op, which of the works
	batch    *kvcache.Batch
	clock    opClock
	samples  [][]float64 // by work
	forwards int
	joules   float64 // of all forwards
	unknown  error   // why joules do not hold
}

func newRooflineRun(arm *RooflineArm, m int) (*rooflineRun, error) {
	o, t := &arm.Options, &rooflineRun{arm: arm, m: m}
	var err error
	if t.works, t.at, _, err = o.Placer.Place(o.Phase(m), m); err != nil {
		return nil, err
	}
	if t.batch, err = o.forward(m).batch(arm.Runner); err != nil {
		return nil, err
	}
	t.samples = make([][]float64, len(t.works))
	t.clock.took = make([]time.Duration, arm.Runner.Ops())
	return t, nil
}

// turn runs one that counts, where need be behind one that warms up.
func (t *rooflineRun) turn(ctx context.Context, first bool) (err error) {
	t.arm.Runner.Lead(func(l *pool.Leader) {
		if warmsUp(t.m, first) {
			if err = t.forward(ctx, l, false); err != nil {
				return
			}
		}
		err = t.forward(ctx, l, true)
	})
	return err
}

// forward runs one, which counts or warms up. It is called inside Lead.
func (t *rooflineRun) forward(ctx context.Context, l *pool.Leader, counts bool) error {
	before, unknown := counters.Joules()
	t.clock.begin()
	if _, err := t.arm.Runner.Forward(l, t.batch, 0, &t.clock); err != nil {
		return err
	}
	t.forwards++
	if after, err := counters.Joules(); unknown == nil && err == nil {
		t.joules += max(0, after-before)
	} else {
		t.unknown = errors.Join(unknown, err)
	}
	if t.arm.Options.Step(); ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if counts {
		for i, took := range t.clock.took {
			t.samples[t.at[i]] = append(t.samples[t.at[i]], took.Seconds())
		}
	}
	return nil
}

// anchored is what the forward says of others.
func (t *rooflineRun) anchored() *anchored {
	f := &anchored{t.m, t.works, t.at, make([]float64, len(t.works))}
	for i, samples := range t.samples {
		f.took[i] = Summarize(samples).Median
	}
	return f
}
