package llm

import (
	"bytes"
	"strings"
	"sync/atomic"
	"testing"

	"sandwich/plans/heuristic"
	"sandwich/profiles"
	"sandwich/runtime/device"
	"sandwich/runtime/device/sim"
	"sandwich/runtime/engine"
	"sandwich/runtime/engine/forward"
	"sandwich/runtime/exec"
	"sandwich/runtime/gguf"
	"sandwich/runtime/kvcache"
	"sandwich/runtime/model"
	"sandwich/runtime/model/modelshape"
	"sandwich/runtime/model/synth"
	"sandwich/runtime/phase"
)

// TestLostDevice checks that a device that is lost during a test is replaced by the cores, whose
// samples alone count, in this test and in those after it.
func TestLostDevice(t *testing.T) {
	c := model.Config{Name: "small", Arch: "llama", Eps: 1e-5, RopeBase: 10000,
		Dims: model.Dims{Hidden: 32, Layers: 1, Heads: 2, KVHeads: 1, HeadDim: 16, FFN: 48, Vocab: 384, Context: 256}}
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
	plan, err := heuristic.Default(host, shape, heuristic.Options{Threads: 1, Attend: "f32", Compute: "f32"})
	if err != nil {
		t.Fatal(err)
	}
	r, err := forward.Open(t.Context(), forward.Options{Options: exec.Options{File: file, Plan: plan,
		Blocks: kvcache.BlocksFor(64), LogitRows: 1, Unpinned: true}})
	if err != nil {
		t.Fatal(err)
	}
	var crash atomic.Bool
	dev := sim.New(sim.Config{Mode: sim.Timed, Fault: func(device.Ticket) sim.Fault {
		if crash.Load() {
			return sim.Crash
		}
		return sim.None
	}})
	defer dev.Close()
	a := &Arm{Name: "small with sim:0", Plan: plan, Runner: r}
	defer a.Close()
	if a.Device, err = engine.Accelerate(t.Context(), r, engine.DeviceOptions{Device: dev, Phases: phase.All[:]}, 1,
		64); err != nil {
		t.Fatal(err)
	}
	reports := 0
	a.Device.OrCores(func(error) { reports++ })
	steps := 0
	step := func() {
		steps++
		crash.Store(steps == 5) // in the second sample of the second test, after one that warms up
	}
	rows, err := Run(t.Context(), Options{Arms: []*Arm{a}, Tests: Tests([]int{4}, []int{2, 3}, nil, 1), Reps: 2,
		Model: "small", Vocab: c.Dims.Vocab, Host: host, Step: step})
	if err != nil {
		t.Fatal(err)
	}
	if reports != 1 || steps != 9 || len(rows) != 3 {
		t.Fatalf("%d reports, %d steps, rows %+v", reports, steps, rows)
	}
	for i, samples := range []int{2, 1, 2} {
		row, lost := rows[i], i > 0
		if len(row.Samples) != samples || row.OnDevice == lost || (row.DeviceLost == "") == lost ||
			lost && !strings.Contains(row.DeviceLost, "simulated crash") {
			t.Errorf("row %d: %d samples, on the device: %v, lost: %q", i, len(row.Samples), row.OnDevice,
				row.DeviceLost)
		}
	}
}
