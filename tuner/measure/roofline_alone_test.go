package measure

import (
	"math"
	"strings"
	"testing"

	"sandwich/plans/thumb"
	"sandwich/profiles"
	"sandwich/roofline"
	"sandwich/runtime/model"
	"sandwich/tuner/service"
)

// predictedOps are the predictions for a forward of m rows of the small llama on a
// kunpeng920, by op, where one PU takes alone seconds for a row of every op without weights.
func predictedOps(t *testing.T, m int, alone float64) (map[string]float64, int) {
	t.Helper()
	host, err := profiles.Builtin("kunpeng920")
	if err != nil {
		t.Fatal(err)
	}
	c, _ := model.Tiny("llama")
	ops, err := c.Model()
	if err != nil {
		t.Fatal(err)
	}
	typ, err := model.ParseFileType("q8_0")
	if err != nil {
		t.Fatal(err)
	}
	shape, err := c.Shape(typ)
	if err != nil {
		t.Fatal(err)
	}
	plan, err := thumb.Default(host, shape, thumb.Options{})
	if err != nil {
		t.Fatal(err)
	}
	profile, _ := service.Complete(host, plan.Widest(), plan.Arithmetics())
	o := RooflineOptions{Rows: []int{m}, Assumed: service.AssumedNear(), Alone: make([]float64, len(ops.Ops)),
		Placer: model.Placer{Model: ops, Plan: plan, Machine: roofline.NewMachine(profile)}}
	for i := range ops.Ops {
		if len(ops.Ops[i].W) == 0 {
			o.Alone[i] = alone
		}
	}
	rows, err := o.Predict()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]float64{}
	for i := range rows {
		out[rows[i].Op] = rows[i].Predicted
	}
	return out, len(plan.Prefill.PUs)
}

// TestPredictRowsAlone: what one PU takes for a row is added for as many rows as a PU has, to ops
// without weights only.
func TestPredictRowsAlone(t *testing.T) {
	const m, alone = 512, 1e-6
	without, pus := predictedOps(t, m, 0)
	with, _ := predictedOps(t, m, alone)
	more := alone * math.Ceil(float64(m)/float64(pus))
	seen := 0
	for op, seconds := range with {
		got := seconds - without[op]
		switch {
		case op == "embed" || op == "rotate" || strings.HasSuffix(op, "_norm"):
			seen++
			if math.Abs(got-more) > 1e-9 {
				t.Errorf("%s: %g s more, want %g", op, got, more)
			}
		case op == "qkv" || op == "down":
			seen++
			if got != 0 {
				t.Errorf("%s: %g s more", op, got)
			}
		}
	}
	if seen < 6 {
		t.Errorf("only %d ops of %v", seen, with)
	}
}

// TestAtPace: at half the pace what cores bound takes twice as long, and what memory bounds as long
// as before.
func TestAtPace(t *testing.T) {
	rows := []RooflineRow{
		{Op: "product", Regime: roofline.ComputeBound.String(), Intensity: 100, Predicted: 1, Seconds: 2, Speed: 0.5},
		{Op: "row", Regime: roofline.MemoryBound.String(), Intensity: 2, Predicted: 1, Seconds: 2, Speed: 0.5},
		{Op: "norm", Regime: roofline.MemoryBound.String(), Predicted: 1, Seconds: 2, Speed: 0.5},
		{Op: "unknown", Regime: roofline.ComputeBound.String(), Intensity: 100, Predicted: 1, Seconds: 2, Error: -0.5},
	}
	got := AtPace(rows)
	for i, want := range []float64{2, 1, 2, 1} {
		if got[i].Predicted != want {
			t.Errorf("%s: predicted %g, want %g", got[i].Op, got[i].Predicted, want)
		}
		if rows[i].Predicted != 1 {
			t.Errorf("%s: the rows themselves were changed", rows[i].Op)
		}
	}
	if e := ErrorsOf(got, 0); e.P90 != 0.5 || got[0].Error != 0 {
		t.Errorf("%+v, %+v", e, got)
	}
}
