package measure

import (
	"context"
	"errors"
	"time"

	"sandwich/microkernel"
	"sandwich/roofline"
	"sandwich/runtime/counters"
	"sandwich/runtime/engine"
	"sandwich/runtime/kvcache"
	"sandwich/runtime/pool"
	"sandwich/topotree"
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

// Roofline predicts and measures the ops of forwards, by arm. Several arms run one forward at a
// time in turn: what a machine reads and computes changes within seconds.
func Roofline(ctx context.Context, arms []RooflineArm) (rows [][]RooflineRow, e Energy, err error) {
	rows, e.Joules = make([][]RooflineRow, len(arms)), map[int]float64{}
	for i := range arms {
		if arms[i].Options.Placer.Plan.TP() > 1 {
			return nil, e, errors.New("ops of several ranks at once are not predicted one by one: leave out --tp")
		}
	}
	for _, m := range arms[0].Options.Rows {
		runs := make([]*rooflineRun, len(arms))
		for i := range arms {
			if runs[i], err = newRooflineRun(&arms[i], m); err != nil {
				return nil, e, err
			}
		}
		if err := inTurn(ctx, runs, arms[0].Options.Reps); err != nil {
			return nil, e, err
		}
		joules, forwards := 0.0, 0
		for i, run := range runs {
			rows[i] = append(rows[i], run.rows()...)
			joules, forwards = joules+run.joules, forwards+len(run.speeds)
			if run.unknown != nil {
				e.Missing = run.unknown
			}
		}
		e.Joules[m] = joules / float64(forwards)
	}
	if e.Missing != nil {
		e.Joules = nil
	}
	return rows, e, nil
}

// inTurn runs the forwards, of which each arm begins a round in turn.
func inTurn(ctx context.Context, runs []*rooflineRun, reps int) (err error) {
	for rep := range reps {
		for i := range runs {
			run := runs[(i+rep)%len(runs)]
			run.arm.Runner.Lead(func(l *pool.Leader) {
				if warmsUp(run.batch.Prefill, rep, len(runs)) {
					if err = run.forward(ctx, l, false); err != nil {
						return
					}
				}
				err = run.forward(ctx, l, true)
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// warmsUp says whether a forward is run before the one that counts: before the first, and where
// other arms ran since, before each of single tokens, whose activations would come from memory
// otherwise; a prompt's are a small part of what it reads.
func warmsUp(prefill bool, rep, arms int) bool { return rep == 0 || arms > 1 && !prefill }

// RooflineForwards is how many forwards Roofline runs, each of which calls Step.
func RooflineForwards(arms []RooflineArm) (n int) {
	for i := range arms {
		o := &arms[i].Options
		for _, m := range o.Rows {
			for rep := range o.Reps {
				if n++; warmsUp(o.forward(m).Prefill, rep, len(arms)) {
					n++
				}
			}
		}
	}
	return n
}

// rooflineRun is a forward of one number of rows on one arm.
type rooflineRun struct {
	arm     *RooflineArm
	list    []RooflineRow
	at      []int // by op, which of the list
	batch   *kvcache.Batch
	clock   opClock
	peak    *microkernel.Peak
	probed  float64     // of the multiply-adds of all workers
	samples [][]float64 // by row of the list
	speeds  []float64   // of the workers' multiply-adds behind each forward
	joules  float64     // of all forwards
	unknown error       // why joules do not hold
}

func newRooflineRun(arm *RooflineArm, m int) (*rooflineRun, error) {
	o, t := &arm.Options, &rooflineRun{arm: arm}
	isa := o.Placer.Plan.ISAOf("")
	workers := topotree.NewCPUSet(arm.Runner.Pool().PUs()...)
	t.probed = o.Placer.Machine.Peak(workers, roofline.Path{ISA: isa.String(), Type: "f32"}).Value
	var err error
	if t.peak, err = microkernel.NewPeak(microkernel.PeakSpec{ISA: isa, Type: "f32"}, microkernel.Host()); err != nil {
		return nil, err
	}
	if t.list, t.at, err = o.predict(m); err != nil {
		return nil, err
	}
	if t.batch, err = o.forward(m).batch(arm.Runner); err != nil {
		return nil, err
	}
	t.samples = make([][]float64, len(t.list))
	t.clock.took = make([]time.Duration, arm.Runner.Ops())
	return t, nil
}

// forward runs one, which counts or warms up. It is called inside Lead.
func (t *rooflineRun) forward(ctx context.Context, l *pool.Leader, counts bool) error {
	before, unknown := counters.Joules()
	t.clock.begin()
	if _, err := t.arm.Runner.Forward(l, t.batch, 0, &t.clock); err != nil {
		return err
	}
	if after, err := counters.Joules(); unknown == nil && err == nil {
		t.joules += max(0, after-before)
	} else {
		t.unknown = errors.Join(unknown, err)
	}
	t.speeds = append(t.speeds, peakOf(l, t.peak, t.arm.Runner.Pool().Size()))
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

// rows are the predictions with what was measured.
func (t *rooflineRun) rows() []RooflineRow {
	for i := range t.list {
		t.list[i].measured(t.samples[i])
		if t.probed > 0 {
			t.list[i].Speed = Summarize(t.speeds).Median / t.probed
		}
	}
	return t.list
}
