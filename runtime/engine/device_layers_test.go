package engine

import (
	"errors"
	"strings"
	"testing"

	"sandwich/runtime/device"
	"sandwich/runtime/device/sim"
	"sandwich/runtime/phase"
)

// layerOptions returns options with a KV cache that is larger than the activations.
func layerOptions(t *testing.T) Options {
	t.Helper()
	o := deviceOptions(t)
	o.Blocks = 400
	return o
}

// oneLayer returns a device whose memory holds one of the two layers of the model of layerOptions.
func oneLayer(t *testing.T) *sim.Device {
	t.Helper()
	const enough = 1 << 30
	whole := sim.New(sim.Config{MemoryBytes: enough})
	defer whole.Close()
	o := layerOptions(t)
	o.Accelerator = DeviceOptions{Device: whole, Name: "sim", Phases: phase.All[:]}
	e, err := New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	missing := uint64(e.runner.Memory().KV) / 8 // a quarter of a layer's
	dev := sim.New(sim.Config{MemoryBytes: enough - whole.Info().FreeBytes - missing})
	t.Cleanup(func() { dev.Close() })
	return dev
}

// TestDeviceLayers checks that a device with memory for some layers computes those if that is
// faster, with the tokens of the cores, and else is refused with the numbers.
func TestDeviceLayers(t *testing.T) {
	if raceEnabled {
		t.Skip("the model of race builds has one layer")
	}
	list := deviceRequests(4)
	want := allTokens(t, open(t, layerOptions(t)), list)
	dev := oneLayer(t)
	free := dev.Info().FreeBytes
	for name, c := range map[string]struct {
		slow     phase.Phase // in which the device is slower; phase.Count: in none
		phases   []phase.Phase
		optional bool
		runs     []phase.Phase
	}{
		"both":               {phase.Count, phase.All[:], false, phase.All[:]},
		"prefill":            {phase.Decode, phase.All[:], false, phase.All[:1]},
		"slower":             {phase.Prefill, phase.All[:1], false, nil},
		"slower, by choice":  {phase.Prefill, phase.All[:1], true, nil},
		"by measured phases": {phase.Decode, nil, false, phase.All[:1]},
	} {
		t.Run(name, func(t *testing.T) {
			times, notes, refused := DeviceTimes{Rows: 1}, "", error(nil)
			for _, p := range phase.All {
				times.Device[p], times.Cores[p] = 1, 2
				if p == c.slow {
					times.Device[p] = 3
				}
			}
			o := layerOptions(t)
			o.Accelerator = DeviceOptions{Device: dev, Name: "sim", Phases: c.phases, Optional: c.optional,
				measured: &times, Note: func(text string) { notes += text }, Refused: func(err error) { refused = err },
				Lost: func(err error) { t.Errorf("the device is lost: %v", err) }}
			e, err := New(t.Context(), o)
			if c.runs == nil && !c.optional {
				refused = err
			} else if err != nil {
				t.Fatal(err)
			}
			const slower = "its first 1 of 2 layers would not make the model faster"
			if c.runs == nil && (!errors.Is(refused, device.ErrMemory) || !strings.Contains(refused.Error(), slower)) {
				t.Errorf("refused: %v", refused)
			}
			if c.runs != nil && !strings.Contains(notes, "it runs the first 1 of 2 layers: ") {
				t.Errorf("notes %q", notes)
			}
			if e == nil {
				return
			}
			for _, p := range phase.All {
				want := len(c.runs) > int(p)
				if on := e.cores.shared[p]; on != want || c.runs != nil && e.deviceRuns(p) != want {
					t.Errorf("%s on the device: %v", p, on)
				}
			}
			sameTokens(t, allTokens(t, e, list), want)
			sameTokens(t, allTokens(t, e, list), want) // with cached prefixes
			e.Close()
		})
	}
	if left := dev.Info().FreeBytes; left != free {
		t.Errorf("%d bytes of the device are not freed", free-left)
	}
}

// TestMemoryTakenWhileLoading checks that a device whose memory another process takes at any time
// while the model is loaded is refused with the numbers, that the cores then run the model, and
// that nothing remains allocated.
func TestMemoryTakenWhileLoading(t *testing.T) {
	skipUnderRace(t) // race builds interpret device programs slowly
	list := deviceRequests(1)
	want := allTokens(t, open(t, deviceOptions(t)), list)
	const enough = 1 << 30
	allocations := 0
	load := func(at int) (refused error) {
		allocations = 0
		dev := sim.New(sim.Config{MemoryBytes: enough, OtherBytes: func() uint64 {
			if at > 0 && allocations >= at {
				return enough
			}
			return 0
		}, Holds: func(uint64) { allocations++ }})
		defer dev.Close()
		o := deviceOptions(t)
		o.Accelerator = DeviceOptions{Device: dev, Name: "sim", Phases: phase.All[:], Optional: true,
			Refused: func(err error) { refused = errors.Join(refused, err) }}
		e := open(t, o)
		sameTokens(t, allTokens(t, e, list), want)
		e.Close()
		at = 0
		if free := dev.Info().FreeBytes; free != enough {
			t.Errorf("%d bytes remain allocated", enough-free)
		}
		return refused
	}
	if err := load(0); err != nil {
		t.Fatal(err)
	}
	for _, at := range []int{1, 4} {
		if err := load(at); !errors.Is(err, device.ErrMemory) || !strings.Contains(err.Error(), "are free on") {
			t.Errorf("memory taken at allocation %d: %v", at, err)
		}
	}
}
