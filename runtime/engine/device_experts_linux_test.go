package engine

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"sandwich/runtime/device"
	"sandwich/runtime/device/sim"
	"sandwich/runtime/gguf"
	"sandwich/runtime/model"
	"sandwich/runtime/offload"
	"sandwich/runtime/phase"
)

// expertsOptions returns options for a small mixture of experts under a plan that a device
// supports, with the experts on the cores.
func expertsOptions(t *testing.T, arch string) Options {
	t.Helper()
	c := model.Config{Name: "tiny", Arch: arch, Eps: 1e-5, RopeBase: 10000,
		Experts: model.Experts{Count: 4, Used: 2, FFN: 32},
		Dims: model.Dims{Hidden: 32, Layers: 2, Heads: 2, KVHeads: 1, HeadDim: 16, FFN: 48, Vocab: tinyVocab,
			Context: 1024}}
	if arch == "gpt-oss" {
		c.Windows = model.Windows{Size: 40, Base: 10000, Period: 2}
	}
	if raceEnabled {
		c.Hidden, c.Layers = 16, 1
	}
	o := onDevice(t, optionsFor(t, fileOf(t, c, gguf.F32)))
	o.Accelerator.ExpertsOnCores = true
	return o
}

// TestDeviceExperts checks that requests get the tokens of the cores alone if the device runs all
// but the experts of some phases, with halts, batches of both classes and cached prefixes.
func TestDeviceExperts(t *testing.T) {
	list := deviceRequests(6)
	if raceEnabled {
		list = list[:3]
	}
	for i, arch := range []string{"qwen3moe", "gpt-oss", "qwen3moe"} {
		phases := [][]phase.Phase{phase.All[:], {phase.Prefill}, {phase.Decode}}[i]
		t.Run(fmt.Sprint(arch, phases), func(t *testing.T) {
			alone := expertsOptions(t, arch)
			alone.Accelerator = DeviceOptions{}
			want := allTokens(t, open(t, alone), list)
			dev := sim.New(sim.Config{})
			t.Cleanup(func() { dev.Close() })
			o := expertsOptions(t, arch)
			o.Accelerator.Device, o.Accelerator.Name, o.Accelerator.Phases = dev, "sim:7", phases
			o.Accelerator.Lost = func(err error) { t.Errorf("the device is lost: %v", err) }
			shared, divided := [phase.Count]int{}, 0
			var e *Engine
			if len(phases) == phase.Count {
				o.Bound = 2 * time.Microsecond // below the predicted time of experts
			}
			o.Observe = func(f Forward) {
				if e != nil && slices.ContainsFunc(e.cores.cuts[e.cores.set], func(n uint16) bool { return n > 1 }) {
					divided++
				}
				if e != nil && e.cores.sharing {
					shared[map[bool]phase.Phase{true: phase.Prefill, false: phase.Decode}[f.Prefill]]++
				}
			}
			e = open(t, o)
			sameTokens(t, allTokens(t, e, list), want)
			sameTokens(t, allTokens(t, e, list), want) // with cached prefixes
			e.Close()
			if divided == 0 && len(phases) == phase.Count {
				t.Errorf("no experts were divided with a bound of %v", o.Bound)
			}
			for _, p := range phase.All {
				on := phases[0] == p || len(phases) > 1
				if (shared[p] > 0) != on {
					t.Errorf("%d forwards of %s ran on the device, want some: %v", shared[p], p, on)
				}
			}
		})
	}
}

// TestDeviceExpertsLost checks that requests continue with the same tokens on the cores if the
// device fails in the middle of forwards that it shares with the cores.
func TestDeviceExpertsLost(t *testing.T) {
	alone := expertsOptions(t, "qwen3moe")
	alone.Accelerator = DeviceOptions{}
	want := allTokens(t, open(t, alone), deviceRequests(4))
	for i, at := range []int64{1, 2, 9, 40} {
		fault := []sim.Fault{sim.Crash, sim.NaN, sim.Lie, sim.Crash}[i]
		t.Run(fmt.Sprintf("%v at %d", fault, at), func(t *testing.T) {
			before := countHeld(t)
			var submitted atomic.Int64
			armed := atomic.Bool{}
			dev := sim.New(sim.Config{Fault: func(device.Ticket) sim.Fault {
				if armed.Load() && submitted.Add(1) >= at {
					return fault
				}
				return sim.None
			}})
			losing(t, expertsOptions(t, "qwen3moe"), dev, phase.All[:], want, before, 0, func() { armed.Store(true) })
		})
	}
}

// TestDeviceExpertsRefused checks the errors of a mixture without ExpertsOnCores and of a dense
// model with it, and that the choice by measurement leaves both phases to the cores if the device
// is slow.
func TestDeviceExpertsRefused(t *testing.T) {
	dev := sim.New(sim.Config{})
	t.Cleanup(func() { dev.Close() })
	o := expertsOptions(t, "qwen3moe")
	o.Accelerator = DeviceOptions{Device: dev, Name: "sim", Phases: phase.All[:]}
	if _, err := New(t.Context(), o); !errors.Is(err, offload.ErrUnsupported) {
		t.Errorf("experts on a device: %v", err)
	}
	dense := deviceOptions(t)
	dense.Accelerator = DeviceOptions{Device: dev, Name: "sim", Phases: phase.All[:], ExpertsOnCores: true}
	if _, err := New(t.Context(), dense); err == nil {
		t.Error("a dense model with experts on the cores was accepted")
	}
	slow := sim.New(sim.Config{Name: "slow"})
	t.Cleanup(func() { slow.Close() })
	var times DeviceTimes
	o.Accelerator = DeviceOptions{Device: slow, Name: "sim", ExpertsOnCores: true,
		Chose: func(t DeviceTimes, _ []phase.Phase) { times = t }}
	if e := open(t, o); e.onDevice.device != nil || times.Device[phase.Decode] <= times.Cores[phase.Decode] {
		t.Errorf("a slow device is used: %s", times)
	}
}
