package deviceforecast

import (
	"slices"
	"strings"
	"testing"

	"sandwich/microkernel"
	"sandwich/plans"
	"sandwich/plans/bundle"
	"sandwich/plans/evidence"
	"sandwich/plans/heuristic"
	"sandwich/plans/selection"
	"sandwich/profiles"
	"sandwich/profiles/devrates"
	"sandwich/runtime/gguf"
	"sandwich/runtime/model"
	"sandwich/runtime/model/arch"
	"sandwich/runtime/model/synth"
	"sandwich/runtime/offload"
	"sandwich/runtime/phase"
	"sandwich/topotree/hwloc"
)

// deviceOf returns the rates of a device with the given rates for all classes that a plan needs.
func deviceOf(t *testing.T, ops *model.Model, p *plans.Plan, flop, bytes float64) *devrates.Device {
	t.Helper()
	products, err := offload.Products(ops, p)
	if err != nil {
		t.Fatal(err)
	}
	names := []string{"attention", "rows"}
	for _, one := range products {
		names = append(names, one.Class())
	}
	d := &devrates.Device{ID: "x:0", WriteBytesPerSecond: 1e10, CopyBackBytesPerSecond: 1e10, LaunchSeconds: 1e-5,
		StepSeconds: 1e-6}
	for _, name := range names {
		d.Classes = append(d.Classes, devrates.Class{Name: name, MemoryIntensity: 1, BytesPerSecond: bytes,
			ComputeIntensity: 100, FLOPPerSecond: flop, LeastSeconds: 1e-6})
	}
	return d
}

// ceilingHost returns a profile with 1 TOP/s of int8, 200 GFLOP/s of float32 and 20 GB/s of memory.
func ceilingHost(t *testing.T) *profiles.Profile {
	t.Helper()
	machine, err := hwloc.ReadSynthetic("l3:1 core:2 pu:1")
	if err != nil {
		t.Fatal(err)
	}
	host := profiles.New(machine, profiles.Identity{Arch: "amd64", ISA: []string{"avx2", "avx512", "avx512_vnni"}})
	for _, c := range []profiles.Ceiling{
		{Kind: profiles.Compute, ISA: "avx512", Type: "int8", Figure: profiles.Figure{Median: 1e12}},
		{Kind: profiles.Compute, ISA: "avx512", Type: "f32", Figure: profiles.Figure{Median: 2e11}},
		{Kind: profiles.Bandwidth, Level: "memory", Figure: profiles.Figure{Median: 2e10}}} {
		c.PUs, c.N = 2, 9
		host.Ceilings = append(host.Ceilings, c)
	}
	return host
}

// presetPlan returns the ops of a preset with q8_0 weights, and a plan for the cores and a device.
func presetPlan(t *testing.T, host *profiles.Profile, preset string) (*model.Model, *plans.Plan) {
	t.Helper()
	config, err := synth.Preset(preset)
	if err != nil {
		t.Fatal(err)
	}
	shape, err := synth.Shape(config, synth.Uniform(gguf.Q8_0))
	if err != nil {
		t.Fatal(err)
	}
	ops, err := arch.Model(config)
	if err != nil {
		t.Fatal(err)
	}
	plan, err := heuristic.Default(host, shape, heuristic.Options{Attend: "f32", Compute: "int8"})
	if err != nil {
		t.Fatal(err)
	}
	return ops, plan
}

// TestPredict checks the phases that are chosen by the rates of a device and by the figures of
// the cores: those of the evidence, else the ceilings.
func TestPredict(t *testing.T) {
	host := ceilingHost(t)
	ops, plan := presetPlan(t, host, "tinyllama-1.1b")
	untuned := &selection.Choice{Plan: plan}
	tuned := &selection.Choice{Plan: plan, Bundle: &bundle.Bundle{Plan: *plan}}
	for p, rate := range map[string]float64{"prefill": 1e6, "decode": 1} {
		test := map[string]string{"prefill": "pp512", "decode": "tg64"}[p]
		for _, name := range []string{"default", "winner: a"} {
			tuned.Bundle.Evidence.Finalists = append(tuned.Bundle.Evidence.Finalists,
				evidence.Arm{Name: p + ", " + name, Test: test, Unit: "tokens/s", Samples: []float64{rate, rate}})
		}
	}
	slow := *plan // on the cores
	slow.Weights = slices.Clone(plan.Weights)
	for i := range slow.Weights {
		slow.Weights[i].Compute = microkernel.ComputeF32
	}
	for _, c := range []struct {
		name            string
		flop, bytes     float64
		chosen, onCores *selection.Choice
		want            []phase.Phase
	}{
		{"slower in both", 1e11, 5e9, untuned, untuned, nil},
		{"faster in both", 1e14, 1e12, untuned, untuned, phase.All[:]},
		{"faster in prompts", 1e14, 5e9, untuned, untuned, []phase.Phase{phase.Prefill}},
		{"faster in decode", 1e11, 1e12, untuned, untuned, []phase.Phase{phase.Decode}},
		{"figures of tuning", 1e14, 5e9, tuned, tuned, []phase.Phase{phase.Decode}},
		{"slow paths on the cores", 2e11, 1e10, &selection.Choice{Plan: &slow}, untuned, nil},
	} {
		p, err := predict(deviceOf(t, ops, c.chosen.Plan, c.flop, c.bytes), host, ops, c.chosen, c.onCores)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(p.Phases, c.want) || p.Best <= 0 || p.Alone <= 0 {
			t.Errorf("%s: %+v, want %v", c.name, p, c.want)
		}
	}
	d := deviceOf(t, ops, plan, 1e12, 1e10)
	d.Classes = d.Classes[:2]
	if _, err := predict(d, host, ops, untuned, untuned); err == nil ||
		!strings.Contains(err.Error(), `no measured rate of class "product q8_0 int8"`) {
		t.Errorf("a device without rates of products: %v", err)
	}
}

// TestPredictedExperts checks that the forwards of a device include the experts on the cores: an
// infinitely fast device is as fast as the other ops are slow, and a slow one is not used.
func TestPredictedExperts(t *testing.T) {
	host := ceilingHost(t)
	ops, plan := presetPlan(t, host, "qwen3-30b-a3b")
	c := &selection.Choice{Plan: plan}
	fast := deviceOf(t, ops, plan, 1e18, 1e16)
	if fast.Class("product q8_0 int8") == nil || fast.Class("product f32 f32") == nil {
		t.Fatalf("classes %+v", fast.Classes)
	}
	fast.WriteBytesPerSecond, fast.CopyBackBytesPerSecond, fast.LaunchSeconds = 1e16, 1e16, 0
	for i := range fast.Classes {
		fast.Classes[i].LeastSeconds = 0
	}
	p, err := predict(fast, host, ops, c, c)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(p.Phases, phase.All[:]) || p.ops != plans.DenseOps ||
		!strings.HasSuffix(p.String(), "it runs prefill and decode but for the experts") {
		t.Errorf("%s", p)
	}
	for _, ph := range phase.All {
		share := float64(p.device[ph].Of(1)) / float64(p.cores[ph].Of(1))
		if share < 0.2 || share > 0.9 { // 3.3 of 30.5e9 weights are read per row, most of them of experts
			t.Errorf("%s: the experts take %.2f of the time of the cores", ph, share)
		}
	}
	if p, err := predict(deviceOf(t, ops, plan, 1e9, 1e8), host, ops, c, c); err != nil || p.Phases != nil {
		t.Errorf("a slow device: %v, %v", p, err)
	}
}

// TestTunedRate checks which figure of a plan's evidence counts for the cores.
func TestTunedRate(t *testing.T) {
	arm := func(name, test string, rate float64) evidence.Arm {
		return evidence.Arm{Name: name, Test: test, Unit: "tokens/s", Samples: []float64{rate, rate, rate}}
	}
	for _, c := range []struct {
		name            string
		list            []evidence.Arm
		prefill, decode float64
	}{
		{"none", nil, 0, 0},
		{"a race", []evidence.Arm{arm("prefill, default", "pp64", 10), arm("prefill, default", "pp512", 20),
			arm("prefill, winner: tuned", "pp64", 30), arm("prefill, winner: tuned", "pp512", 40),
			arm("decode, winner: default", "tg batch 1", 5), arm("decode, winner: default", "tg batch 4", 9)}, 40, 5},
		{"a device won", []evidence.Arm{arm("prefill, default", "pp512", 20), arm("prefill, tuned", "pp512", 25),
			arm("prefill, winner: on device x:0", "pp512", 90)}, 25, 0},
		{"a part of the model", []evidence.Arm{arm("prefill, winner: default", "pp512, 4 of 32 layers", 20)}, 0, 0},
	} {
		e := &evidence.Evidence{Finalists: c.list}
		if p, d := tunedRate(e, phase.Prefill), tunedRate(e, phase.Decode); p != c.prefill || d != c.decode {
			t.Errorf("%s: %v and %v, want %v and %v", c.name, p, d, c.prefill, c.decode)
		}
	}
}
