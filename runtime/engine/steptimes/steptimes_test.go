package steptimes

import (
	"testing"

	"sandwich/plans"
	"sandwich/plans/heuristic"
	"sandwich/profiles"
	"sandwich/runtime/gguf"
	"sandwich/runtime/model/modelshape"
	"sandwich/runtime/model/synth"
)

// TestEstimate checks that times grow with rows and positions, and that a mixture of experts, whose
// rows read distinct experts, gains less from more rows than a dense model.
func TestEstimate(t *testing.T) {
	host, err := profiles.Builtin("kunpeng920")
	if err != nil {
		t.Fatal(err)
	}
	ratio := map[string]float64{}
	for _, preset := range []string{"llama-3.2-1b", "qwen3-30b-a3b", "qwen3.5-0.8b"} {
		c, err := synth.Preset(preset)
		if err != nil {
			t.Fatal(err)
		}
		shape, err := synth.Shape(c, synth.Uniform(gguf.Q8_0))
		if err != nil {
			t.Fatal(err)
		}
		plan, err := heuristic.Default(host, shape, heuristic.Options{})
		if err != nil {
			t.Fatal(err)
		}
		m, err := modelshape.Outline(plan.Model)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range []*profiles.Profile{nil, host} {
			curves, err := Estimate(m, plan, p, 8)
			if err != nil || len(curves) != 2 || len(curves[0].Times) != 8 {
				t.Fatalf("%s: %v, %+v", preset, err, curves)
			}
			for i := range curves[0].Times {
				near, far := curves[0].Times[i], curves[1].Times[i]
				if near <= 0 || far <= near || i > 0 && near <= curves[0].Times[i-1] {
					t.Errorf("%s, %d rows: %g s at %d positions, %g s at %d", preset, i+1, near, short, far, long)
				}
			}
			ratio[preset] = curves[0].Times[3] / curves[0].Times[0]
		}
		if _, err := Estimate(m, &plans.Plan{}, host, 8); err == nil {
			t.Errorf("%s: a plan for another model gives times", preset)
		}
	}
	if ratio["qwen3-30b-a3b"] < 1.5*ratio["llama-3.2-1b"] {
		t.Errorf("four rows take %v times one row", ratio)
	}
}
