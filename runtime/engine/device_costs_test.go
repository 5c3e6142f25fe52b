package engine

import (
	"fmt"
	"slices"
	"testing"

	"sandwich/runtime/device/sim"
	"sandwich/runtime/phase"
)

// TestCostsOf checks that the forwards of a phase are predicted by the times of the side that runs
// them, also after the loss of the device.
func TestCostsOf(t *testing.T) {
	for _, phases := range [][]phase.Phase{{phase.Prefill}, {phase.Decode}, phase.All[:]} {
		t.Run(fmt.Sprint(phases), func(t *testing.T) {
			dev := sim.New(sim.Config{})
			t.Cleanup(func() { dev.Close() })
			o := deviceOptions(t)
			o.Accelerator = DeviceOptions{Device: dev, Name: "sim", Phases: phases}
			e := open(t, o)
			e.mu.Lock()
			defer e.mu.Unlock()
			for _, p := range phase.All {
				want := e.cores.costs
				if slices.Contains(phases, p) {
					want = e.onDevice.costs
				}
				if e.costsOf(p) != want {
					t.Errorf("%s is predicted by the other side", p)
				}
			}
			if e.onDevice.costs == e.cores.costs {
				t.Error("both sides share a table")
			}
			on := e.onDevice.device
			e.onDevice.device = nil
			for _, p := range phase.All {
				if e.costsOf(p) != e.cores.costs {
					t.Errorf("%s is predicted by a lost device", p)
				}
			}
			e.onDevice.device = on
		})
	}
}

// TestMonitorOfOneLane checks that the traffic of memory is not measured where the cores compute a
// part of each forward of the device, so that one forward runs at a time.
func TestMonitorOfOneLane(t *testing.T) {
	dev := sim.New(sim.Config{Unified: true})
	t.Cleanup(func() { dev.Close() })
	r := open(t, deviceOptions(t)).runner
	for _, needsCores := range []bool{false, true} {
		o := DeviceOptions{Device: dev, Phases: []phase.Phase{phase.Prefill}, needsCores: needsCores}
		if m := o.monitor(r); (m == nil) != needsCores {
			t.Errorf("the cores are needed: %v, measured: %v", needsCores, m != nil)
		}
	}
}
