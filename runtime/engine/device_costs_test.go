package engine

import (
	"fmt"
	"slices"
	"testing"
	"time"

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

// TestFastest checks that the first forward on a device, which may compile kernels for longer than
// measurements take, does not count.
func TestFastest(t *testing.T) {
	const ms = time.Millisecond
	for _, x := range []struct {
		takes    []time.Duration
		compiles bool
		want     time.Duration
		runs     int
	}{
		{[]time.Duration{9 * ms, 5 * ms, 3 * ms, 4 * ms}, false, 3 * ms, measureReps + 1},
		{[]time.Duration{1 * ms, 5 * ms, 3 * ms, 4 * ms}, true, 3 * ms, measureReps + 1},
		{[]time.Duration{5000 * ms, 5 * ms, 3 * ms, 4 * ms}, true, 3 * ms, measureReps + 1},
		{[]time.Duration{5000 * ms, 4000 * ms}, true, 4000 * ms, 2},
		{[]time.Duration{5000 * ms}, false, 5000 * ms, 1},
	} {
		clock, runs := time.Time{}, 0
		piece := func(f func() error) error { return f() }
		got, err := fastest(func() time.Time { return clock }, piece, func() error {
			clock = clock.Add(x.takes[runs])
			runs++
			return nil
		}, x.compiles)
		if err != nil || got != x.want || runs != x.runs {
			t.Errorf("forwards of %v: %v after %d, %v", x.takes, got, runs, err)
		}
	}
}
