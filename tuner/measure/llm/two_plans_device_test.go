package llm

import (
	"bytes"
	"context"
	"sync/atomic"
	"testing"

	"sandwich/plans"
	"sandwich/plans/gate"
	"sandwich/plans/heuristic"
	"sandwich/profiles"
	"sandwich/runtime/device"
	"sandwich/runtime/device/sim"
	"sandwich/runtime/gguf"
	"sandwich/runtime/model"
	"sandwich/runtime/model/modelshape"
	"sandwich/runtime/model/synth"
	"sandwich/runtime/phase"
)

// submissions counts those of the simulated device.
var submissions atomic.Int64

type driver struct{}

func (driver) List(context.Context) ([]device.Info, error) {
	return []device.Info{{Name: "timed"}}, nil
}

func (driver) Open(context.Context, int) (device.Device, error) {
	return sim.New(sim.Config{Mode: sim.Timed, Fault: func(device.Ticket) sim.Fault {
		submissions.Add(1)
		return sim.None
	}}), nil
}

func init() { device.Register("timed", driver{}) }

// TestTwoPlansOnDevice checks that the phases that a plan places on a device run there, and those
// of the other plan on the cores, over one copy of the weights.
func TestTwoPlansOnDevice(t *testing.T) {
	c := model.Config{Name: "small", Arch: "llama", Eps: 1e-5, RopeBase: 10000,
		Dims: model.Dims{Hidden: 32, Layers: 2, Heads: 2, KVHeads: 1, HeadDim: 16, FFN: 48, Vocab: 384, Context: 256}}
	t.Run("dense", func(t *testing.T) { testTwoPlansOnDevice(t, c) })
	c.Arch, c.Experts = "qwen3moe", model.Experts{Count: 4, Used: 2, FFN: 32}
	t.Run("experts", func(t *testing.T) { testTwoPlansOnDevice(t, c) })
}

func testTwoPlansOnDevice(t *testing.T, c model.Config) {
	var data bytes.Buffer
	if err := synth.Write(t.Context(), gguf.NewWriter(&data), c, synth.Uniform(gguf.F32), 1, nil); err != nil {
		t.Fatal(err)
	}
	file, err := gguf.Parse(data.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	shape, err := modelshape.Of(file)
	if err != nil {
		t.Fatal(err)
	}
	host, err := profiles.Live()
	if err != nil {
		t.Fatal(err)
	}
	plan, err := heuristic.Default(host, shape, heuristic.Options{Attend: "f32", Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	placed := *plan
	placed.Placement = plans.PlaceOn("timed:0", shape.DeviceOps(), false, phase.Prefill)
	cases := []gate.Case{{Prefill: true, Rows: 70}, {Rows: 2}}
	two, err := OpenTwoPlans(t.Context(), file, plan, &placed, cases)
	if err != nil {
		t.Fatal(err)
	}
	defer two.Close()
	if len(two.copies) != 1 {
		t.Errorf("%d copies of the weights", len(two.copies))
	}
	for _, c := range cases {
		two.times[c] = 1
		for side := range 2 {
			before := submissions.Load()
			rate, err := two.Sample(t.Context(), side, c)
			if err != nil || rate <= 0 {
				t.Fatalf("side %d: %v tokens/s, %v", side, rate, err)
			}
			if ran := submissions.Load() > before; ran != (side == 1 && c.Prefill) {
				t.Errorf("side %d, prefill %v: ran on the device: %v", side, c.Prefill, ran)
			}
		}
	}
	gone := placed
	gone.Placement = plans.PlaceOn("timed:0x", plans.AllOps, false, phase.Prefill)
	if two, err := OpenTwoPlans(t.Context(), file, plan, &gone, cases); err == nil {
		two.Close()
		t.Error("a plan ran without its device")
	}
	gone.Placement[0].Optional = true
	two, err = OpenTwoPlans(t.Context(), file, plan, &gone, cases)
	if err != nil {
		t.Fatal(err)
	}
	two.Close()
}
