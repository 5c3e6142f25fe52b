package roofline

import (
	"math"
	"strings"
	"testing"

	"sandwich/profiles"
)

func point(kind, isa, typ, level string, pus int, v float64) profiles.Ceiling {
	return profiles.Ceiling{Kind: kind, ISA: isa, Type: typ, Level: level, PUs: pus, Figure: profiles.Figure{Median: v, Assumed: true}}
}

// eight is a machine with peaks at 1 and 8 PUs and a bandwidth that saturates at 4.
func eight() *profiles.Profile {
	return &profiles.Profile{Ceilings: []profiles.Ceiling{
		point(profiles.Compute, "avx2", "f32", "", 8, 800), point(profiles.Compute, "avx2", "f32", "", 1, 100),
		point(profiles.Compute, "avx512", "f32", "", 1, 190),
		point(profiles.Bandwidth, "", "", "memory", 1, 10), point(profiles.Bandwidth, "", "", "memory", 2, 20), point(profiles.Bandwidth, "", "", "memory", 4, 38), point(profiles.Bandwidth, "", "", "memory", 8, 40),
		{Kind: profiles.Compute, Device: "sme", Type: "f32", PUs: 2, Figure: profiles.Figure{Median: 2000, Assumed: true}},
	}}
}

func TestSampled(t *testing.T) {
	p := eight()
	for _, c := range []struct {
		s    Sampled
		n    int
		want float64
	}{
		{ComputeCeiling(p, "avx2", "f32"), 1, 100}, {ComputeCeiling(p, "avx2", "f32"), 3, 300}, {ComputeCeiling(p, "avx2", "f32"), 8, 800}, {ComputeCeiling(p, "avx2", "f32"), 16, 800},
		{ComputeCeiling(p, "avx2", "f32"), 0, 0}, {ComputeCeiling(p, "neon", "f32"), 4, 0},
		{BandwidthCeiling(p, "memory"), 3, 29}, {BandwidthCeiling(p, "memory"), 6, 39}, {BandwidthCeiling(p, "l2"), 1, 0},
	} {
		if got := c.s.At(c.n); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%v at %d: %v, want %v", c.s, c.n, got, c.want)
		}
	}
	bw := BandwidthCeiling(p, "memory")
	if bw.Saturation(0.95) != 4 || bw.Saturation(1) != 8 || bw.Saturation(0.1) != 1 || (Sampled{}).Saturation(0.5) != 0 {
		t.Errorf("saturation at %d and %d PUs", bw.Saturation(0.95), bw.Saturation(1))
	}
}

func TestFromProfile(t *testing.T) {
	r, err := FromProfile(eight(), "avx2", "f32", 4)
	if err != nil || r.Bandwidth != 38 || len(r.Targets) != 2 || r.Targets[0] != (Target{"avx2/f32", 400}) || r.Targets[1].Peak != 2000 {
		t.Errorf("%+v, %v", r, err)
	}
	if _, err := FromProfile(eight(), "neon", "f32", 4); err == nil || !strings.Contains(err.Error(), "probe") {
		t.Errorf("an unknown ceiling: %v", err)
	}
}

// TestMixedCeilingIsNoUnit: SME and cores of an M4 Pro reach 4.27 TFLOP/s together, which is less than the sum of what each reaches alone.
func TestMixedCeilingIsNoUnit(t *testing.T) {
	p, err := profiles.Builtin("m4pro")
	if err != nil {
		t.Fatal(err)
	}
	r, err := FromProfile(p, "neon", "f16", 8)
	if err != nil || len(r.Targets) != 2 || r.Mixed != 4.27e12 {
		t.Fatalf("%+v, %v", r, err)
	}
	prefill := MatMul(512, 14336, 4096, 16)
	if got := prefill.FLOP / r.Place(prefill).Seconds; math.Abs(got-4.27e12) > 1 {
		t.Errorf("prefill at %.3g FLOP/s, want 4.27e12", got)
	}
	batched := MatMul(10, 4096, 4096, 16) // on the SME units alone
	if got, want := r.Place(batched).Seconds, r.Seconds(r.Targets[1], batched); got != want {
		t.Errorf("batched decode in %g s, want %g", got, want)
	}
	p.Ceilings = append(p.Ceilings, profiles.Ceiling{Kind: profiles.Compute, Device: "gpu", Type: "f16", PUs: 1, Figure: profiles.Figure{Median: 7e12, Assumed: true}})
	if r, err := FromProfile(p, "neon", "f16", 8); err != nil || len(r.Targets) != 3 || r.Mixed != 0 {
		t.Errorf("two of three units bound all: %+v, %v", r, err)
	}
	cores, err := ByType(p, "neon", []string{"f16", "f32"}, 8)
	if err != nil || len(cores["f16"].Targets) != 1 || cores["f16"].Mixed != 0 || cores["f32"].Targets[0].Peak != 8*115e9 {
		t.Errorf("the cores alone: %+v, %v", cores, err)
	}
}
