package ranking

import (
	"math"
	"strings"
	"testing"
	"time"

	"sandwich/plans/heuristic"
	"sandwich/profiles"
	"sandwich/roofline"
	"sandwich/runtime/gguf"
	"sandwich/runtime/model"
	"sandwich/runtime/model/synth"
	"sandwich/tuner/candidates"
	"sandwich/tuner/measure/kernels"
	"sandwich/tuner/replay"
)

// TestAnchorsFindTheCeilings simulates a machine that reads at half of its ceiling and multiplies
// at a fifth. Products between the anchors must be predicted exactly, and a slower one must show as
// an error.
func TestAnchorsFindTheCeilings(t *testing.T) {
	host, err := profiles.Builtin("kunpeng920")
	if err != nil {
		t.Fatal(err)
	}
	shape := shapeFor(t, "tinyllama-1.1b", "q8_0")
	plan, err := heuristic.Default(host, shape, heuristic.Options{})
	if err != nil {
		t.Fatal(err)
	}
	profile, _ := candidates.Complete(host, plan.Widest(), plan.Arithmetics())
	predictor, err := candidates.NewPredictor(profile, plan, nil, candidates.Options{})
	if err != nil {
		t.Fatal(err)
	}
	c := &calibration{plan: plan, predictor: predictor, pus: plan.Prefill.PUs,
		out: &Calibration{Types: map[string]roofline.Efficiency{}}}
	tables := c.byBytes()
	if first, last := tables[0].WeightKey, tables[len(tables)-1].WeightKey; first.K != 5632 || last.N != 32000 {
		t.Fatalf("anchors are products of %s, and the last is %s", first, last)
	}
	predictor.Calibrate(map[string]roofline.Efficiency{"q8_0": {Peak: 0.2, Read: 0.5, Alone: 0.3}})
	for i, w := range tables {
		path, _ := plan.Weight(w.WeightKey)
		for _, m := range []int{1, 16, 32, 512} {
			seconds := predictor.Product(m, w.WeightKey, path.Compute.String(), c.pus)
			if i == 1 && m == 16 {
				seconds *= 2
			}
			c.took = append(c.took, kernels.ProductTime{Key: w.WeightKey, Compute: path.Compute, M: m,
				Seconds: []float64{seconds, seconds * 5, seconds}})
		}
	}
	first := c.one()
	c.alone = append(c.alone, kernels.ProductTime{Key: tables[0].WeightKey, M: 1,
		Seconds: []float64{predictor.Product(1, tables[0].WeightKey, "int8", first)}})
	predictor.Calibrate(nil)
	c.estimate()
	near := c.out.Types["q8_0"]
	if math.Abs(near.Peak-0.2) > 1e-6 || math.Abs(near.Read-0.5) > 1e-6 || math.Abs(near.Alone-0.3) > 1e-6 {
		t.Errorf("%+v", near)
	}
	e := c.out.Error()
	if n := len(c.out.Errors); n != 4*len(tables)-3 || e.Products != n || e.Median > 1e-9 ||
		math.Abs(c.out.Errors[n-1]-0.5) > 1e-9 {
		t.Errorf("errors %v", c.out.Errors)
	}
	if len(c.out.Measured) != 1 || !strings.Contains(c.out.Measured[0], "reach 50 % of what PUs") ||
		!strings.Contains(c.out.Measured[0], "(PU 0 alone: 30 %)") {
		t.Errorf("%q", c.out.Measured)
	}
	// Disturbed anchors are rejected if the assumed figures predict better.
	predictor.Calibrate(nil)
	c.out = &Calibration{Types: map[string]roofline.Efficiency{}}
	for i := range c.took {
		p := &c.took[i]
		seconds := predictor.Product(p.M, p.Key, p.Compute.String(), c.pus)
		if p.Key == tables[0].WeightKey {
			seconds *= 7
		}
		p.Seconds = []float64{seconds}
	}
	c.estimate()
	if c.out.known() || c.out.Error().Median > 1e-9 || !strings.Contains(c.out.Measured[0], "rejected") {
		t.Errorf("%+v", c.out)
	}
}

// TestAnchorsOfThisMachine checks that the ranking reports measured anchors and their errors, and
// that no anchor is measured after the time for them.
func TestAnchorsOfThisMachine(t *testing.T) {
	host, err := profiles.Live()
	if err != nil {
		t.Fatal(err)
	}
	c := model.Config{Name: "tiny", Arch: "llama", Eps: 1e-5, RopeBase: 10000,
		Dims: model.Dims{Hidden: 64, Layers: 2, Heads: 4, KVHeads: 2, HeadDim: 16, FFN: 96, Vocab: 400, Context: 256}}
	shape, err := synth.Shape(c, synth.Uniform(gguf.Q8_0))
	if err != nil {
		t.Fatal(err)
	}
	so := Options{Profile: host, Shape: shape, Load: Load{Requests: 2, Sequential: true}}
	if none, err := Anchors(t.Context(), so, 0); err != nil || none.Error() != nil {
		t.Errorf("without time: %+v, %v", none, err)
	}
	if so.Anchors, err = anchors(t.Context(), so, time.Hour, time.Millisecond); err != nil {
		t.Fatal(err)
	}
	if so.Anchors.Error() == nil {
		t.Fatalf("no anchor was measured: %+v", so.Anchors)
	}
	if so.Load.Workload, err = replay.Named("fixed"); err != nil {
		t.Fatal(err)
	}
	r, err := Simulate(t.Context(), so)
	if err != nil {
		t.Fatal(err)
	}
	trace := r.Trace()
	if len(trace.Measured) == 0 || trace.Errors.Products == 0 {
		t.Errorf("%+v", trace)
	}
}
