package measure

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"sandwich/runtime/energy"
	"sandwich/runtime/energy/live"
	"sandwich/runtime/engine/forward"
	"sandwich/runtime/kvcache"
	"sandwich/runtime/model/cost"
	"sandwich/runtime/pool"
	"sandwich/tuner/measure/spread"
)

// RooflineArm is a model loaded under one instruction set, on a runner that holds Positions.
type RooflineArm struct {
	Runner  *forward.Runner
	Options RooflineOptions
}

// Energy is the energy of forwards in joules by their rows, the mean over all arms.
type Energy struct {
	Joules  map[int]float64 // of one forward
	Sources string          // whose energy Joules adds
	Missing error           // why there are none; nil if Joules is valid
}

// Roofline predicts and measures the ops of forwards, by arm, and returns the basis of the
// predictions. It runs forwards and their anchors, of all arms, interleaved one at a time, because
// the rates of a machine change within seconds.
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
	meter := live.Open("", nil)
	defer func() { err = errors.Join(err, meter.Close()) }()
	orders := [2][]*rooflineRun{list, otherWay(list)}
	for rep := range arms[0].Options.Reps {
		for _, run := range orders[rep%2] {
			if err := run.round(ctx, meter, rep == 0); err != nil {
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

// add adds the joules of a forward of m rows.
func (e *Energy) add(m int, list []*rooflineRun) {
	var used energy.Reading
	forwards := 0
	for _, run := range list {
		if run.m == m && !run.anchor {
			used, forwards = used.Add(run.energy), forwards+run.forwards
		}
	}
	joules, err := used.Total()
	if err != nil {
		e.Joules, e.Missing = nil, err
	}
	if e.Joules != nil {
		e.Joules[m], e.Sources = joules/float64(forwards), used.Summed()
	}
}

// rooflineRuns returns the forwards of all arms and their anchors, ascending by rows, with equal
// forwards of different arms adjacent.
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

// byRows sorts by rows and keeps the order of equal ones.
func byRows(list []*rooflineRun) {
	slices.SortStableFunc(list, func(a, b *rooflineRun) int { return cmp.Compare(a.m, b.m) })
}

// otherWay reverses the order of forwards with equal rows.
func otherWay(list []*rooflineRun) []*rooflineRun {
	out := slices.Clone(list)
	slices.Reverse(out)
	byRows(out)
	return out
}

// predicted returns the predictions of an arm's forwards by its anchors, with the measurements.
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
	return rows, by.sentences(o.pus(cost.Phases[0])), nil
}

// Forwards of up to shortRows rows are short. A warm-up runs before the measured ones, because
// other forwards evicted their activations; several are measured, because ops that occur once per
// forward have few samples.
const (
	shortRows = 64
	ofShort   = 3
)

// counting returns the number of forwards of m rows per round, and how many of them are measured.
func counting(m int, first bool) (all, count int) {
	switch {
	case m <= shortRows:
		return 1 + ofShort, ofShort
	case first:
		return 2, 1
	}
	return 1, 1
}

// RooflineForwards returns the number of forwards that Roofline runs, each of which calls Step.
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
	anchor   bool // predictions are based on it
	works    []cost.OpWork
	at       []int // index of the work of each op
	batch    *kvcache.Batch
	clock    opClock
	samples  [][]float64 // by work
	forwards int
	energy   energy.Reading // of all forwards
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

// round runs the forwards of a round, the measured ones last.
func (t *rooflineRun) round(ctx context.Context, meter *energy.Meter, first bool) (err error) {
	all, count := counting(t.m, first)
	t.arm.Runner.Lead(func(l *pool.Leader) {
		for i := 0; i < all && err == nil; i++ {
			err = t.forward(ctx, l, meter, i >= all-count)
		}
	})
	return err
}

// forward runs one measured or warm-up forward. It must be called inside Lead.
func (t *rooflineRun) forward(ctx context.Context, l *pool.Leader, meter *energy.Meter, counts bool) error {
	before := meter.Read()
	t.clock.begin()
	if _, err := t.arm.Runner.Forward(l, t.batch, 0, &t.clock); err != nil {
		return err
	}
	t.forwards++
	t.energy = t.energy.Add(meter.Read().Sub(before))
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

// anchored returns the forward as a basis of predictions.
func (t *rooflineRun) anchored() *anchored {
	f := &anchored{t.works, t.at, make([]float64, len(t.works))}
	for i := range f.took {
		f.took[i] = spread.Summarize(t.alike(i)).Median
	}
	return f
}

// alike returns the samples of a work and of those that move rows in the same way, because the last
// norm occurs once per forward, and a few samples may all be disturbed.
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
