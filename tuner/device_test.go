package tuner

import (
	"slices"
	"strings"
	"testing"

	"sandwich/plans"
	"sandwich/plans/bundle"
	"sandwich/plans/evidence"
	"sandwich/runtime/device/sim"
	"sandwich/runtime/exec"
	"sandwich/runtime/model"
	"sandwich/runtime/phase"
	"sandwich/tuner/finals"
)

// TestTuneDevice checks that the plan places exactly the phases whose race a device won, and that
// the evidence has a device that won none.
func TestTuneDevice(t *testing.T) {
	dev := sim.New(sim.Config{Mode: sim.Timed})
	defer dev.Close()
	o := unhurried(tiny(t))
	o.Search.Strategy = "cost-model" // takes few trials
	o.Race.Device = finals.Device{ID: "sim:0", Device: dev}
	b, err := Tune(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if !knows(b, "sim:0") {
		t.Errorf("the evidence lacks the device: %+v", b.Evidence)
	}
	_, phases, _ := b.Plan.Device()
	for _, p := range phase.All {
		places, _ := b.Evidence.Places(p.String())
		won := len(places) > 0 && plans.IsDeviceArm(places[0].Arm)
		if placed := slices.Contains(phases, p); placed != won {
			t.Errorf("%s is on a device: %v; the race: %+v", p, placed, places)
		}
	}
}

// knows reports whether the evidence says what became of a device in the race.
func knows(b *bundle.Bundle, id string) bool {
	for _, p := range phase.All {
		places, _ := b.Evidence.Places(p.String())
		if slices.ContainsFunc(places, func(x evidence.Place) bool { return plans.IsDeviceArm(x.Arm) }) {
			return true
		}
	}
	return slices.ContainsFunc(b.Evidence.Rejected, func(r evidence.Rejected) bool {
		return strings.Contains(r.Candidate, id) || strings.Contains(r.Reason, "the default stays")
	})
}

// tinyOf returns the options of tiny for a dense model or a mixture of experts.
func tinyOf(t *testing.T, arch string) Options {
	t.Helper()
	o := tiny(t)
	if arch == "qwen3moe" {
		c := *o.Subject.Config
		c.Arch, c.Experts = arch, model.Experts{Count: 4, Used: 2, FFN: 32}
		o.Subject.Config = &c
	}
	return o
}

// TestBundleOfDevice checks that a plan of which a device won a phase places it there but for the
// experts of the model, lets the cores take its place, and has tables for them.
func TestBundleOfDevice(t *testing.T) {
	for arch, ops := range map[string]string{"llama": plans.AllOps, "qwen3moe": plans.DenseOps} {
		t.Run(arch, func(t *testing.T) { testBundleOfDevice(t, tinyOf(t, arch), ops) })
	}
}

func testBundleOfDevice(t *testing.T, o Options, ops string) {
	o.Subject.Plan.Attend = "f32"
	o.Race.Device.ID, o.Race.Device.Copies = "sim:0", true
	if err := o.complete(); err != nil {
		t.Fatal(err)
	}
	u, err := start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer u.close()
	out := outcome{result: finals.Default(u.loader.Home())}
	out.result.Phases[phase.Decode].OnDevice = true
	b, err := u.bundle(out)
	if err != nil {
		t.Fatal(err)
	}
	id, phases, optional := b.Plan.Device()
	want := []phase.Phase{phase.Decode}
	if id != "sim:0" || !slices.Equal(phases, want) || !optional || len(b.Plan.Decode.Tables) == 0 ||
		b.Plan.DeviceOps() != ops {
		t.Errorf("placement %+v", b.Plan.Placement)
	}
	n, err := u.loader.Home().DeviceBytes()
	if err != nil || b.Plan.Placement[0].CopyBytes != n {
		t.Errorf("a copy of %d bytes, want %d: %v", b.Plan.Placement[0].CopyBytes, n, err)
	}
	experts := int64(0)
	for _, w := range b.Plan.Model.Weights {
		if b.Plan.Model.Routed(w) {
			experts += int64(w.Count * w.N * w.K) // at least a byte for each value of q8_0
		}
	}
	list, err := exec.ForecastMemory(exec.Options{Plan: &b.Plan, Blocks: 1, LogitRows: 1, Sequences: 1})
	if err != nil || n <= 0 || list[0].Weights-n < experts || (experts == 0) != (list[0].Weights == n) {
		t.Errorf("a device has %d of %+v bytes: %v", n, list, err)
	}
}
