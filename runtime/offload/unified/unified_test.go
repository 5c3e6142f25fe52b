package unified

import (
	"errors"
	"strings"
	"testing"

	"sandwich/runtime/device"
	"sandwich/runtime/device/sim"
	"sandwich/runtime/mem"
)

const gib = 1 << 30

// typical is a load whose second copy costs 1 % of what the cores read.
var typical = Load{Weights: gib, CoresRead: 100 * gib, Copied: gib / 2, Available: 2 * gib}

func fixed(private, shared float64) func(device.Device, Load) (Rates, error) {
	return func(device.Device, Load) (Rates, error) { return Rates{private, shared}, nil }
}

func open(t *testing.T, c sim.Config) *sim.Device {
	t.Helper()
	d := sim.New(c)
	t.Cleanup(func() { _ = d.Close() })
	return d
}

// TestDecision checks which memory is shared, and what the note says.
func TestDecision(t *testing.T) {
	shared := sim.Config{Unified: true, Sharing: device.Imported}
	exported := sim.Config{Unified: true, Sharing: device.Exported}
	noRoom, onDevice := typical, typical
	noRoom.Available, onDevice.CoresRead = gib/2, 0
	for name, c := range map[string]struct {
		config  sim.Config
		load    Load
		measure func(device.Device, Load) (Rates, error)
		shares  bool
		note    string
	}{
		"imported": {shared, typical, fixed(10e9, 10e9), true,
			"exist once, in imported memory of the host (the cores read it at 10.0 GB/s, private memory at 10.0 GB/s)"},
		"exported":           {exported, typical, fixed(10e9, 9.8e9), true, "exist once, in exported memory"},
		"slow":               {shared, typical, fixed(10e9, 8e9), false, "the cores read shared memory at 8.0 GB/s"},
		"slow, no room":      {shared, noRoom, fixed(10e9, 8e9), true, "exist once"},
		"slow, device alone": {shared, onDevice, fixed(10e9, 8e9), true, "exist once"},
		"discrete":           {sim.Config{Sharing: device.Imported}, typical, fixed(10e9, 10e9), false, ""},
		"not shared": {sim.Config{Unified: true}, typical, fixed(10e9, 10e9), false,
			"a second copy of 8.0 KiB of weights and KV cache: simulated device has no shared memory"},
		"not measured": {shared, typical, func(device.Device, Load) (Rates, error) {
			return Rates{}, errors.New("refused")
		}, false, "could not be measured: refused"},
	} {
		m := New(open(t, c.config), c.load, c.measure)
		b, err := m.Alloc(5000, mem.Options{Node: mem.AnyNode})
		if err != nil {
			t.Fatal(err)
		}
		if shares := m.Buffer(b) != nil; shares != c.shares || m.Shares() != c.shares {
			t.Errorf("%s: shared: %v", name, shares)
		}
		copied := uint64(b.Len())
		if c.shares {
			copied = 0
		}
		if note := m.Note(copied); !strings.Contains(note, c.note) || c.note == "" && note != "" {
			t.Errorf("%s: note %q, want %q", name, note, c.note)
		}
		if err := b.Free(); err != nil || m.Buffer(b) != nil {
			t.Errorf("%s: after Free: %v", name, err)
		}
	}
}

// TestAlloc checks that allocations count once, on the device, and that refused ones are private.
func TestAlloc(t *testing.T) {
	refuse := false
	d := open(t, sim.Config{Unified: true, Sharing: device.Exported, MemoryBytes: 1 << 20,
		RefuseShared: func(uint64) error {
			if refuse {
				return errors.New("the driver refuses it")
			}
			return nil
		}})
	m := New(d, typical, fixed(1, 1))
	b, err := m.Alloc(5000, mem.Options{Node: mem.AnyNode})
	if err != nil {
		t.Fatal(err)
	}
	if buffer := m.Buffer(b); buffer == nil || &buffer.Host()[0] != &b.Bytes()[0] || b.Len() != 8192 {
		t.Errorf("%d bytes in buffer %v", b.Len(), buffer)
	}
	if free := d.Info().FreeBytes; free != 1<<20-8192 {
		t.Errorf("%d bytes are free", free)
	}
	refuse = true
	private, err := m.Alloc(5000, mem.Options{Node: mem.AnyNode})
	if err != nil || m.Buffer(private) != nil {
		t.Errorf("a refused buffer: %v", err)
	}
	if note := m.Note(8192); !strings.HasSuffix(note, ": the driver refuses it") {
		t.Errorf("note %q", note)
	}
	if err := errors.Join(private.Free(), b.Free()); err != nil || d.Info().FreeBytes != 1<<20 {
		t.Errorf("%v, %d bytes are free", err, d.Info().FreeBytes)
	}
}

// TestNil checks that no Memory means private memory.
func TestNil(t *testing.T) {
	var m *Memory
	b, err := m.Alloc(10, mem.Options{Node: mem.AnyNode})
	if err != nil || m.Buffer(b) != nil || m.Note(0) != "" {
		t.Errorf("%v", err)
	}
	if err := b.Free(); err != nil {
		t.Error(err)
	}
}

// TestMeasure checks that a measurement returns rates, frees its memory and reports refusals.
func TestMeasure(t *testing.T) {
	d := open(t, sim.Config{Unified: true, Sharing: device.Exported, MemoryBytes: 1 << 21})
	before := mem.Total()
	for weights, ok := range map[int64]bool{0: true, 1 << 20: true, gib: false} {
		r, err := measure(d, Load{Weights: weights})
		if ok != (err == nil && r.Private > leastRate && r.Shared > leastRate) {
			t.Errorf("%d bytes: %v, %v", weights, r, err)
		}
		if free := d.Info().FreeBytes; free != 1<<21 || mem.Total() != before {
			t.Errorf("%d bytes of the device are free; %d bytes remain", free, mem.Total()-before)
		}
	}
	for n := range 40 {
		words := make([]uint64, n)
		for i := range words {
			words[i] = 1
		}
		if got := sum(words); n > 0 && (got == 0 || got > uint64(n)) {
			t.Errorf("the sum of %d words is %d", n, got)
		}
	}
}
