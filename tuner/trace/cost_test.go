package trace

import (
	"testing"

	"sandwich/microkernel"
	"sandwich/plans"
	"sandwich/profiles"
	"sandwich/runtime/gguf"
	"sandwich/runtime/model"
)

// machine has 100 GFLOP/s of float32, 800 GOP/s of integers and 10 GB/s of memory.
func machine() *profiles.Profile {
	fig := func(v float64) profiles.Figure { return profiles.Figure{Median: v, Assumed: true} }
	return &profiles.Profile{Ceilings: []profiles.Ceiling{
		{Kind: profiles.Compute, ISA: "go", Type: "f32", PUs: 1, Figure: fig(100e9)},
		{Kind: profiles.Compute, ISA: "go", Type: "int8", PUs: 1, Figure: fig(800e9)},
		{Kind: profiles.Bandwidth, Level: "memory", PUs: 1, Figure: fig(10e9)},
	}}
}

// roofed is a preset on that machine, and the values of its matrices by role.
func roofed(t *testing.T, preset string, typ gguf.Type, path microkernel.Compute) (*RoofCost, *plans.Plan,
	map[string]float64) {
	t.Helper()
	config, err := model.Preset(preset)
	if err != nil {
		t.Fatal(err)
	}
	shape, err := config.Shape(model.Uniform(typ))
	if err != nil {
		t.Fatal(err)
	}
	plan := &plans.Plan{Prefill: plans.Phase{PUs: plans.PUSet{0, 1}}, Decode: plans.Phase{PUs: plans.PUSet{0}},
		Model: shape}
	values := map[string]float64{}
	for _, w := range shape.Weights {
		values[w.Role] += float64(w.N) * float64(w.K) * float64(w.Count)
		if w.Role != plans.RoleEmbed {
			values["all"] += float64(w.N) * float64(w.K) * float64(w.Count)
		}
	}
	for _, k := range shape.Unique() {
		if k.Type == typ.String() {
			plan.Weights = append(plan.Weights, plans.WeightPlan{WeightKey: k, Compute: path})
		}
	}
	c, err := NewRoofCost(machine(), plan, nil)
	if err != nil {
		t.Fatal(err)
	}
	return c, plan, values
}

// near wants a time to be a little more than expected.
func near(t *testing.T, what string, got, want, slack float64) {
	t.Helper()
	if got < want || got > (1+slack)*want {
		t.Errorf("%s takes %.4f s, want a little over %.4f", what, got, want)
	}
}

func TestRoofCost(t *testing.T) {
	c, plan, values := roofed(t, "llama-1.3b", gguf.F32, microkernel.ComputeF32)
	if got := c.Ops(); got != 24*8+4 {
		t.Errorf("a dense model of 24 layers has %d ops, want 196", got)
	}
	one := c.Decode([]int{0}).Seconds()
	near(t, "a decode step, which reads all weights", one, 4*values["all"]/10e9/0.8, 0.01)
	if eight := c.Decode(make([]int, 8)).Seconds(); eight > 1.1*one {
		t.Errorf("eight rows take %.4f s and one %.4f: both read the weights once", eight, one)
	}
	near(t, "a chunk, which is bound by arithmetic", c.Prefill(0, 1024, false).Seconds(),
		2*1024*(values["all"]-values["head"])/100e9/0.8, 0.1)
	if c.Prefill(100000, 64, false) <= c.Prefill(0, 64, false) || c.Prefill(0, 64, true) <= c.Prefill(0, 64, false) {
		t.Error("context and head cost nothing")
	}
	if _, err := NewRoofCost(&profiles.Profile{}, plan, nil); err == nil {
		t.Error("a profile without ceilings is not refused")
	}
	plan.Model.Arch = "gpt-j"
	if _, err := NewRoofCost(machine(), plan, nil); err == nil {
		t.Error("an architecture without ops is not refused")
	}
}

// TestRoofCostOfExperts: of the experts those count that rows reach, and ops are those of the
// architecture.
func TestRoofCostOfExperts(t *testing.T) {
	c, _, values := roofed(t, "qwen3-30b-a3b", gguf.Q4_0, microkernel.ComputeF32)
	if got := c.Ops(); got != 48*12+4 {
		t.Errorf("a mixture of 48 layers has %d ops, want 580", got)
	}
	experts := values["gate"] + values["up"] + values["down"]
	dense := values["all"] - experts - values["router"]
	near(t, "a decode step", c.Decode([]int{0}).Seconds(),
		((dense+experts*8/128)*4.5+values["router"]*32)/8/10e9/0.8, 0.01)
	rows := 1024 * 2 * (dense - values["head"] + experts*8/128 + values["router"])
	near(t, "a chunk", c.Prefill(0, 1024, false).Seconds(), rows/100e9/0.8, 0.1)
}

// TestAttentionIsFloat32: beside products in integers attention keeps the peak of float32.
func TestAttentionIsFloat32(t *testing.T) {
	c, _, values := roofed(t, "llama-1.3b", gguf.Q8_0, microkernel.ComputeInt8)
	products := 2 * 512 * (values["all"] - values["head"]) / 800e9
	attention := 24 * 4 * (512*16384 - 512*511/2.) * 16 * 128 / 100e9
	near(t, "the last chunk of 16384 tokens", c.Prefill(16384-512, 512, false).Seconds(),
		(products+attention)/0.8, 0.02)
}

// TestRoofCostOfWindows: where the file says more than the shape, the cost follows it.
func TestRoofCostOfWindows(t *testing.T) {
	all, plan, _ := roofed(t, "llama-1.3b", gguf.F32, microkernel.ComputeF32)
	m, err := model.Outline(plan.Model)
	if err != nil {
		t.Fatal(err)
	}
	for i := range m.Ops {
		m.Ops[i].Attn.Window = 256
	}
	few, err := NewRoofCost(machine(), plan, m)
	if err != nil {
		t.Fatal(err)
	}
	if all.Decode([]int{200}) != few.Decode([]int{200}) || all.Decode([]int{9000}) <= few.Decode([]int{9000}) ||
		few.Decode([]int{9000}) != few.Decode([]int{300}) {
		t.Error("a step costs by what its layers do not see")
	}
}
