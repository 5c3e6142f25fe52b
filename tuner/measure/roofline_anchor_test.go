package measure

import (
	"math"
	"testing"

	"sandwich/plans/heuristic"
	"sandwich/profiles"
	"sandwich/roofline"
	"sandwich/runtime/model/arch"
	"sandwich/runtime/model/cost"
	"sandwich/runtime/model/synth"
	"sandwich/tuner/candidates"
)

// rooflineOf returns options for a llama of 1.1b on a kunpeng920.
func rooflineOf(t *testing.T, rows ...int) *RooflineOptions {
	t.Helper()
	host, err := profiles.Builtin("kunpeng920")
	if err != nil {
		t.Fatal(err)
	}
	c, err := synth.Preset("tinyllama-1.1b")
	if err != nil {
		t.Fatal(err)
	}
	ops, err := arch.Model(c)
	if err != nil {
		t.Fatal(err)
	}
	typ, err := synth.ParseFileType("q8_0")
	if err != nil {
		t.Fatal(err)
	}
	shape, err := synth.Shape(c, typ)
	if err != nil {
		t.Fatal(err)
	}
	plan, err := heuristic.Default(host, shape, heuristic.Options{})
	if err != nil {
		t.Fatal(err)
	}
	profile, _ := candidates.Complete(host, plan.Widest(), plan.Arithmetics())
	return &RooflineOptions{Rows: rows, Assumed: candidates.AssumedNear(),
		Placer: cost.Placer{Model: ops, Plan: plan, Machine: roofline.NewMachine(profile), Context: 512}}
}

// synthetic returns a forward of m rows on a machine on which ops reach the fractions near of their
// ceilings, and ops that only move rows take each seconds per row plus all seconds per forward.
func (o *RooflineOptions) synthetic(t *testing.T, m int, near roofline.Efficiency, each, all float64) *anchored {
	t.Helper()
	works, at, _, err := o.Placer.Place(o.Phase(m), m)
	if err != nil {
		t.Fatal(err)
	}
	same := *o
	same.Assumed = near
	rows, _, err := same.predict(m, nil)
	if err != nil {
		t.Fatal(err)
	}
	f := &anchored{works, at, make([]float64, len(works))}
	for i := range works {
		if f.took[i] = rows[i].Predicted; rows[i].FLOP == 0 {
			f.took[i] = all + each*float64(m)
		}
	}
	return f
}

// TestAnchoredPredictions checks that four forwards predict every other exactly, op by op, for any
// fraction of the ceilings.
func TestAnchoredPredictions(t *testing.T) {
	const each, all = 3e-7, 2e-5
	for _, near := range []roofline.Efficiency{{Peak: 0.8, Read: 0.9}, {Peak: 0.3, Read: 0.5}} {
		o, forwards := rooflineOf(t, 1, 4, 16, 64, 256, 1024), map[int]*anchored{}
		for _, m := range o.anchors() {
			forwards[m] = o.synthetic(t, m, near, each, all)
		}
		by := o.anchorsBy(forwards)
		moved := 0
		for _, m := range o.Rows {
			want := o.synthetic(t, m, near, each, all)
			got, _, err := o.predict(m, by)
			if err != nil {
				t.Fatal(err)
			}
			for i := range got {
				if got[i].FLOP == 0 {
					moved++
				}
				if off := got[i].Predicted/want.took[i] - 1; math.Abs(off) > 0.05 {
					t.Errorf("%+v, %s of %d rows: %.3g s, want %.3g", near, got[i].Op, m, got[i].Predicted,
						want.took[i])
				}
			}
		}
		if moved < 4*len(o.Rows) || len(by.types) != 1 || len(by.own) != 1 {
			t.Errorf("%d ops only move rows; anchors of %v and %v", moved, by.types, by.own)
		}
	}
}

// TestAnchorsOfBusyMachines checks that predictions are finite and not negative if forwards took as
// long for few rows as for many, or no time.
func TestAnchorsOfBusyMachines(t *testing.T) {
	for _, seconds := range []float64{0, 1e-9, 1} {
		o, forwards := rooflineOf(t, 1, 16, 2048), map[int]*anchored{}
		for _, m := range o.anchors() {
			f := o.synthetic(t, m, o.Assumed, 0, 0)
			for i := range f.took {
				f.took[i] = seconds
			}
			forwards[m] = f
		}
		by := o.anchorsBy(forwards)
		for _, m := range o.Rows {
			got, _, err := o.predict(m, by)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range got {
				if !(r.Predicted >= 0) || math.IsInf(r.Predicted, 0) {
					t.Errorf("anchors of %g s: %s of %d rows: %g s", seconds, r.Op, m, r.Predicted)
				}
			}
		}
	}
}

// TestAnchorRows checks that the anchors of a phase are forwards of that phase, and run in one
// chunk.
func TestAnchorRows(t *testing.T) {
	o := rooflineOf(t, 1)
	for _, limit := range []int{0, 1, 2, 3, 16, 64, 256} {
		o.Placer.Plan.BatchMax = limit
		for _, phase := range cost.Phases {
			for _, m := range o.anchorsOf(phase) {
				if limit > 0 && o.Phase(m) != phase || m < 1 || m > o.Longest() {
					t.Errorf("batches of %d: %d rows are %s and no anchor of %s", limit, m, o.Phase(m), phase)
				}
			}
		}
	}
}
