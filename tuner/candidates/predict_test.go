package candidates

import (
	"testing"

	"sandwich/plans"
	"sandwich/plans/heuristic"
	"sandwich/profiles"
	"sandwich/roofline"
	"sandwich/runtime/model/synth"
	"sandwich/topotree"
	"sandwich/topotree/hwloc"
)

// twoPUs returns a machine with 100 GFLOP/s of float32, 800 GOP/s of integers and 10 GB/s per PU.
func twoPUs(t *testing.T) *profiles.Profile {
	t.Helper()
	m, err := hwloc.ReadSynthetic("core:2")
	if err != nil {
		t.Fatal(err)
	}
	p := profiles.New(m, profiles.Identity{ISA: []string{"avx2"}})
	for n := 1; n <= 2; n++ {
		fig := func(v float64) profiles.Figure { return profiles.Figure{Median: float64(n) * v, Assumed: true} }
		p.Ceilings = append(p.Ceilings,
			profiles.Ceiling{Kind: profiles.Compute, ISA: "avx2", Type: "f32", PUs: n, Figure: fig(100e9)},
			profiles.Ceiling{Kind: profiles.Compute, ISA: "avx2", Type: "int8", PUs: n, Figure: fig(800e9)},
			profiles.Ceiling{Kind: profiles.Bandwidth, Level: "memory", PUs: n, Figure: fig(10e9)})
	}
	return p
}

func shapeOf(t *testing.T, preset, typ string) plans.ModelShape {
	t.Helper()
	c, err := synth.Preset(preset)
	if err != nil {
		t.Fatal(err)
	}
	ft, err := synth.ParseFileType(typ)
	if err != nil {
		t.Fatal(err)
	}
	s, err := synth.Shape(c, ft)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// costOn returns the cost of one rank on some PUs.
func costOn(t *testing.T, shape plans.ModelShape, prefill, decode topotree.CPUSet) *Cost {
	t.Helper()
	return costBy(t, shape, prefill, decode, nil)
}

// costBy is like costOn with given fractions of the ceilings.
func costBy(t *testing.T, shape plans.ModelShape, prefill, decode topotree.CPUSet,
	near map[string]roofline.Efficiency) *Cost {
	t.Helper()
	p := twoPUs(t)
	plan, err := heuristic.Default(p, shape, heuristic.Options{})
	if err != nil {
		t.Fatal(err)
	}
	predictor, err := NewPredictor(p, plan, nil, Options{})
	if err != nil {
		t.Fatal(err)
	}
	predictor.Calibrate(near)
	c, err := predictor.Cost(&Config{Ranks: []Rank{{PUs: prefill.Union(decode)}}, Prefill: prefill, Decode: decode})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func bytesOf(s plans.ModelShape, bits float64) (bytes float64) {
	for _, w := range s.Weights {
		if w.Role != plans.RoleEmbed {
			bytes += float64(w.N) * float64(w.K) * float64(w.Count) * bits / 8
		}
	}
	return bytes
}

// TestCost checks that one row reads all weights, that many rows are compute-bound, and that each
// phase runs on its own PUs.
func TestCost(t *testing.T) {
	shape := shapeOf(t, "tinyllama-1.1b", "f32")
	c := costOn(t, shape, topotree.CPURange(0, 1), topotree.CPURange(0, 0))
	one := c.Decode([]int{0}).Seconds()
	if want := bytesOf(shape, 32) / 10e9 / nearCeiling; one < want || one > 1.02*want {
		t.Errorf("a decode step takes %.4f s, want a little over %.4f", one, want)
	}
	if eight := c.Decode(make([]int, 8)).Seconds(); eight > 1.1*one {
		t.Errorf("eight rows take %.4f s and one %.4f: both read the weights once", eight, one)
	}
	many := c.Prefill(0, 1024, false).Seconds()
	head := 32000. * 2048
	if want := 1024 * 2 * (bytesOf(shape, 8) - head) / 200e9 / nearCeiling; many < want || many > 1.1*want {
		t.Errorf("a chunk takes %.3f s, want a little over %.3f", many, want)
	}
	if c.Prefill(100000, 64, false) <= c.Prefill(0, 64, false) || c.Prefill(0, 64, true) <= c.Prefill(0, 64, false) {
		t.Error("context and head cost nothing")
	}
}

// TestPUsAreNoFasterTogether checks the bandwidth of one PU that alone reads less than its share of
// the total, and that two PUs are bound by the smaller of both figures.
func TestPUsAreNoFasterTogether(t *testing.T) {
	shape := shapeOf(t, "tinyllama-1.1b", "f32")
	first, both := topotree.CPURange(0, 0), topotree.CPURange(0, 1)
	times := func(alone float64) (one, two float64) {
		near := map[string]roofline.Efficiency{"f32": {Peak: 0.8, Read: 0.8, Alone: alone}}
		c := costBy(t, shape, both, first, near)
		return c.Decode([]int{0}).Seconds(), costBy(t, shape, both, both, near).Decode([]int{0}).Seconds()
	}
	one, two := times(0)
	for _, x := range []struct{ alone, more float64 }{{1.2, 1}, {0.8, 1}, {0.5, 1.6}} {
		slowOne, slowTwo := times(x.alone)
		if a, b := slowOne/one, slowTwo/two; a < 0.97*x.more || a > 1.03*x.more || b < 0.97*x.more || b > 1.03*x.more {
			t.Errorf("alone %g of the ceiling: one PU takes %.2f times as long, two %.2f, want %g", x.alone, a,
				b, x.more)
		}
	}
}

// TestCostOfExperts checks that only experts that rows select are counted.
func TestCostOfExperts(t *testing.T) {
	shape := shapeOf(t, "qwen3-30b-a3b", "q4_0")
	all := topotree.CPURange(0, 1)
	got := costOn(t, shape, all, all).Decode([]int{0}).Seconds()
	if dense := bytesOf(shape, 4.5) / 20e9 / nearCeiling; got > dense/5 || got < dense/20 {
		t.Errorf("a decode step takes %.4f s; all experts would take %.4f", got, dense)
	}
}

// TestAttentionIsFloat32 checks that attention has the peak of float32 if products are in integers.
func TestAttentionIsFloat32(t *testing.T) {
	shape := shapeOf(t, "tinyllama-1.1b", "q8_0")
	all := topotree.CPURange(0, 1)
	c := costOn(t, shape, all, all)
	extra := c.Prefill(16384-512, 512, false).Seconds() - c.Prefill(0, 512, false).Seconds()
	attention := 22 * 4 * 512 * (16384. - 512) * 2048 / 200e9 / nearCeiling
	if extra < 0.98*attention || extra > 1.02*attention {
		t.Errorf("15872 positions before a chunk cost %.3f s, want %.3f", extra, attention)
	}
}
