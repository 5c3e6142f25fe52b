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
	turns := [2][]*rooflineRun{list, otherWay(list)}
	for rep := range arms[0].Options.Reps {
		for _, run := range turns[rep%2] {
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
	byRows(list)
	return list, nil
}

// byRows sorts the fewest rows first, and leaves forwards of as many as they are.
func byRows(list []*rooflineRun) {
	slices.SortStableFunc(list, func(a, b *rooflineRun) int { return cmp.Compare(a.m, b.m) })
}

// otherWay has forwards of as many rows the other way round.
func otherWay(list []*rooflineRun) []*rooflineRun {
	out := slices.Clone(list)
	slices.Reverse(out)
	byRows(out)
	return out
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

// Forwards of up to so many rows are short. Another like them runs before those that count, since
// their activations would come from memory otherwise (other forwards ran since), and several count,
// since what is there once in a forward has few samples.
const (
	shortRows = 64
	ofShort   = 3
)

// counting is how many forwards of m rows run in a turn, of which so many count.
func counting(m int, first bool) (all, count int) {
	switch {
	case m <= shortRows:
		return 1 + ofShort, ofShort
	case first:
		return 2, 1
	}
	return 1, 1
}

// RooflineForwards is how many forwards Roofline runs, each of which calls Step.
func RooflineForwards(arms []RooflineArm) (n int) {
	for i := range arms {
		o := &arms[i].Options
		for _, m := range slices.Concat(o.Rows, o.anchors()) {
			for rep := range o.Reps {
				all, _ := counting(m, rep == 0)
				n += all
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

// turn runs those of a turn, the ones that count last.
func (t *rooflineRun) turn(ctx context.Context, first bool) (err error) {
	all, count := counting(t.m, first)
	t.arm.Runner.Lead(func(l *pool.Leader) {
		for i := 0; i < all && err == nil; i++ {
			err = t.forward(ctx, l, i >= all-count)
		}
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
	f := &anchored{t.works, t.at, make([]float64, len(t.works))}
	for i := range f.took {
		f.took[i] = Summarize(t.alike(i)).Median
	}
	return f
}

// alike are the samples of a work, and of those that move rows in the same way: the last norm is
// there once in a forward, and a few samples may all have been disturbed.
func (t *rooflineRun) alike(i int) (samples []float64) {
	w := &t.works[i]
	if _, multiplies := kindOf(w); multiplies {
		return t.samples[i]
	}
	for k := range t.works {
		if o := &t.works[k]; o.Kind == w.Kind && slices.Equal(o.Parts, w.Parts) {
			samples = append(samples, t.samples[k]...)
		}
	}
	return samples
}
