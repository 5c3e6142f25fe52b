package engine

import (
	"slices"
	"sync/atomic"
	"testing"

	"sandwich/runtime/device"
	"sandwich/runtime/device/sim"
	"sandwich/runtime/engine/forward"
	"sandwich/runtime/phase"
	"sandwich/runtime/pool"
)

// TestAcceleratorOrCores checks that the cores continue a sequence with the same logits when the
// device is lost, if that is permitted, and that it fails otherwise.
func TestAcceleratorOrCores(t *testing.T) {
	skipUnderRace(t) // race builds interpret device programs slowly
	o := deviceOptions(t)
	o.LogitRows, o.Blocks = 1, 4
	r, err := forward.Open(t.Context(), o.Options)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	prompt := deviceRequests(3)[2].Prompt
	run := func(a *Accelerator) (all []float32, err error) { return logitsThrough(t, r, a, prompt) }
	want, err := run(nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		fault   sim.Fault
		phases  []phase.Phase
		permits bool
		inexact device.Exactness
		fails   bool
	}{
		"crash":              {sim.Crash, phase.All[:], true, 0, false},
		"crash in prompts":   {sim.Crash, []phase.Phase{phase.Prefill}, true, 0, false},
		"NaN":                {sim.NaN, []phase.Phase{phase.Decode}, true, 0, false},
		"without permission": {sim.Crash, phase.All[:], false, 0, true},
		"inexact":            {sim.Crash, phase.All[:], true, 1 << device.Division, true},
	} {
		t.Run(name, func(t *testing.T) {
			var armed atomic.Bool
			dev := sim.New(sim.Config{Inexact: c.inexact, Fault: func(device.Ticket) sim.Fault {
				if armed.Load() {
					return c.fault
				}
				return sim.None
			}})
			defer dev.Close()
			a, err := Accelerate(t.Context(), r, DeviceOptions{Device: dev, Phases: c.phases, Rounding: true}, 1, 128)
			if err != nil {
				t.Fatal(err)
			}
			defer a.Close()
			if got, err := run(a); err != nil || !slices.Equal(got, want) || a.Lost() != nil {
				t.Fatalf("before the fault: %v, lost: %v", err, a.Lost())
			}
			reports := 0
			if c.permits {
				a.OrCores(func(error) { reports++ })
			}
			armed.Store(true) // nothing runs on the device
			got, err := run(a)
			if c.fails {
				if err == nil || reports != 0 || a.Lost() != nil {
					t.Errorf("error %v, lost: %v, %d reports", err, a.Lost(), reports)
				}
				return
			}
			if err != nil || !slices.Equal(got, want) || reports != 1 {
				t.Errorf("error %v, %d reports; equal logits: %v", err, reports, slices.Equal(got, want))
			}
			if a.Lost() == nil || a.Runs(phase.Prefill) || a.Runs(phase.Decode) {
				t.Errorf("lost: %v; it runs phases: %v %v", a.Lost(), a.Runs(phase.Prefill), a.Runs(phase.Decode))
			}
			if dev.Err() == nil {
				t.Error("the lost device is still open")
			}
		})
	}
}

// logitsThrough returns the logits of a sequence whose forwards run through an accelerator.
func logitsThrough(t *testing.T, r *forward.Runner, a *Accelerator, prompt []int32) (all []float32, err error) {
	t.Helper()
	r.Lead(func(l *pool.Leader) {
		s := NewSequence(r, l)
		defer s.Reset()
		s.Through(t.Context(), a)
		err = s.Feed(prompt, 32, LastLogits, func(_ int, logits []float32) error {
			all = append(all, logits...)
			return nil
		})
		for i := 0; i < 3 && err == nil; i++ {
			var logits []float32
			logits, err = s.Step(int32(i + 5))
			all = append(all, logits...)
		}
	})
	return all, err
}
