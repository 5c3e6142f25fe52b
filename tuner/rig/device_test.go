package rig

import (
	"bytes"
	"testing"

	"sandwich/plans/heuristic"
	"sandwich/profiles"
	"sandwich/runtime/device/sim"
	"sandwich/runtime/exec"
	"sandwich/runtime/gguf"
	"sandwich/runtime/model"
	"sandwich/runtime/model/modelshape"
	"sandwich/runtime/model/synth"
	"sandwich/runtime/phase"
	"sandwich/runtime/pool"
)

// TestExpertsOnWorkers checks that an arm on a device runs whole forwards of a mixture of experts,
// whose experts the workers compute.
func TestExpertsOnWorkers(t *testing.T) {
	c := model.Config{Name: "small", Arch: "qwen3moe", Eps: 1e-5, RopeBase: 10000,
		Experts: model.Experts{Count: 4, Used: 2, FFN: 32},
		Dims: model.Dims{Hidden: 32, Layers: 2, Heads: 2, KVHeads: 1, HeadDim: 16, FFN: 48, Vocab: 384,
			Context: 256}}
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
	workers, err := exec.NewWorkers(exec.PlanWorkers(plan))
	if err != nil {
		t.Fatal(err)
	}
	defer workers.Close()
	r, err := Open(t.Context(), workers, file, plan, Size{Batch: 2, Depth: 70}, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	dev := sim.New(sim.Config{Mode: sim.Timed})
	defer dev.Close()
	for i, p := range []phase.Phase{phase.Prefill, phase.Decode} {
		arm := Arm{Key: p.String(), Phase: &plan.Prefill, Device: dev}
		if p == phase.Decode {
			arm.Phase = &plan.Decode
		}
		workers.Pool.Lead(func(l *pool.Leader) {
			x := Test{Phase: p, N: []int{9, 2}[i], Times: 2}
			seconds, err := r.Sample(t.Context(), l, arm, x, endless{})
			if err != nil || seconds <= 0 {
				t.Errorf("%s: %v s, %v", p, seconds, err)
			}
		})
		if a := r.arms[arm.Key]; a.executor == nil || a.device == nil {
			t.Errorf("%s runs on the workers: %v, on the device: %v", p, a.executor != nil, a.device != nil)
		}
	}
}

// endless is a gate that never stops a forward.
type endless struct{}

func (endless) Passed(int) bool { return false }
