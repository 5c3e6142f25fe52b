package deviceforecast

import (
	"testing"

	"sandwich/plans/heuristic"
	"sandwich/plans/selection"
	"sandwich/runtime/gguf"
	"sandwich/runtime/model/arch"
	"sandwich/runtime/model/synth"
)

// TestFastest checks when weights use exact integer sums because of a device: if these are faster
// on the device by more than the error of the prediction, and the device runs both phases.
func TestFastest(t *testing.T) {
	host := ceilingHost(t)
	config, err := synth.Preset("tinyllama-1.1b")
	if err != nil {
		t.Fatal(err)
	}
	shape, err := synth.Shape(config, synth.Uniform(gguf.Q4_K))
	if err != nil {
		t.Fatal(err)
	}
	ops, err := arch.Model(config)
	if err != nil {
		t.Fatal(err)
	}
	var list []*selection.Choice
	for _, compute := range []string{"int8-256", "int8-k"} {
		plan, err := heuristic.Default(host, shape, heuristic.Options{Attend: "f32", Compute: compute, Device: true})
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, &selection.Choice{Plan: plan})
	}
	for _, c := range []struct {
		name                     string
		flop, integerFLOP, bytes float64
		want                     int // of the plans
	}{
		{"faster", 1e13, 2e13, 1e12, 1},
		{"hardly faster", 1e13, 1.02e13, 1e12, 0},
		{"slower", 2e13, 1e13, 1e12, 0},
		{"decode on the cores", 1e13, 2e13, 5e9, 0},
		{"not used", 1e10, 2e10, 1e9, 0},
	} {
		d := deviceOf(t, ops, list[0].Plan, c.flop, c.bytes)
		other := deviceOf(t, ops, list[1].Plan, c.integerFLOP, c.bytes)
		d.Classes = append(other.Classes, d.Classes...) // the first of equal names count
		p, err := Fastest(d, host, ops, list, list[0])
		if err != nil {
			t.Fatal(err)
		}
		if p.Plan != list[c.want] {
			t.Errorf("%s: %s, want plan %d", c.name, p, c.want)
		}
	}
	if p, err := Fastest(deviceOf(t, ops, list[0].Plan, 1e13, 1e12), host, ops, list, list[0]); err != nil ||
		p.Plan != list[0] {
		t.Errorf("without rates of the other path: %v, %v", p, err)
	}
}
