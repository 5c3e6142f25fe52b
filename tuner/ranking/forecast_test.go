package ranking

import (
	"context"
	"math"
	"testing"

	"sandwich/plans/heuristic"
	"sandwich/roofline"
	"sandwich/tuner/measure"
	"sandwich/tuner/replay"
)

// TestForecast checks that a plan's forwards are predicted as the ranking predicts those of its
// configuration, with the given calibration.
func TestForecast(t *testing.T) {
	h := plant(9)
	o := Options{Profile: h.profile(t, 9, 0.03), Shape: shapeFor(t, "llama-160m", "f32")}
	w, err := replay.Named("sharegpt")
	if err != nil {
		t.Fatal(err)
	}
	o.Load = Load{Workload: w, Seed: 1, Sequential: true, Requests: 3}
	r, err := Simulate(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	plan, err := heuristic.Default(o.Profile, o.Shape, heuristic.Options{})
	if err != nil {
		t.Fatal(err)
	}
	list := []measure.Forward{{Prefill: true, Rows: 16}, {Prefill: true, Rows: 256, Context: 1024},
		{Rows: 1, Context: 128}, {Rows: 8, Context: 1024}}
	forecast := func(o Options) (out [][]float64) {
		f, err := NewForecast(o)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range r.Ranked {
			service, err := c.Config.Service()
			if err != nil {
				t.Fatal(err)
			}
			plan.Use(service)
			seconds, err := f.Seconds(plan, list)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, seconds)
		}
		return out
	}
	plain := forecast(o)
	differs := false
	for i, c := range r.Ranked {
		want := []float64{c.Cost.Prefill(0, 16, true).Seconds(), c.Cost.Prefill(1024, 256, true).Seconds(),
			c.Cost.DecodeSeconds(1, 128), c.Cost.DecodeSeconds(8, 1024)}
		differs = differs || math.Abs(want[2]/r.Ranked[0].Cost.DecodeSeconds(1, 128)-1) > 0.1
		for k := range list {
			if math.Abs(plain[i][k]/want[k]-1) > 1e-6 {
				t.Errorf("%s, %s: predicted %g s, the ranking %g", c.Names[0], list[k].Name(), plain[i][k], want[k])
			}
		}
	}
	if !differs {
		t.Error("all configurations are alike: the test shows nothing")
	}
	c := &Calibration{Errors: []float64{0.3}}
	c.Add(&Calibration{Types: map[string]roofline.Efficiency{"f32": {Peak: 0.4, Read: 0.4}, "": {Peak: 0.4, Read: 0.4}},
		Errors: []float64{0.1}})
	c.Add(&Calibration{Types: map[string]roofline.Efficiency{"f32": {Peak: 0.9, Read: 0.9}}})
	if e := c.Error(); e == nil || math.Abs(e.Median-0.2) > 1e-9 {
		t.Errorf("errors of two calibrations are %v", e)
	}
	o.Anchors = c
	for i, seconds := range forecast(o) {
		if x := seconds[2] / plain[i][2]; x < 1.2 || x > 2 { // half of the assumed rate, and barriers
			t.Errorf("%s: by the calibration a token takes %.2f times as long", r.Ranked[i].Names[0], x)
		}
	}
}
