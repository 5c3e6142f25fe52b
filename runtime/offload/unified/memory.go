// Package unified allocates weights and KV cache once for the cores and a device that use the same
// memory. It first compares how fast the cores read shared and private memory, and leaves the
// memory private where one copy would cost more than it saves.
package unified

import (
	"cmp"
	"errors"
	"fmt"
	"sync"

	"sandwich/runtime/device"
	"sandwich/runtime/mem"
)

// Load describes what one copy of the memory costs and saves. All sizes are in bytes.
type Load struct {
	Weights   int64 // of the model
	CoresRead int64 // what the cores read of the weights during a typical request
	Copied    int64 // keys and values that a second copy makes both sides copy during that request
	Available int64 // memory for a second copy of the weights; negative: not known
}

// Memory allocates memory for the cores that a device uses too. Its methods may be called
// concurrently. A nil Memory allocates private memory.
type Memory struct {
	device device.Device
	rates  Rates
	reason error // why the memory is private; nil: it is shared

	mu      sync.Mutex
	buffers map[*mem.Buffer]device.Buffer
	refused error // the last refusal of the device
}

// New decides whether memory is shared with a device. rates returns the rates at which the cores
// read both kinds of memory; nil measures them.
func New(d device.Device, l Load, rates func(d device.Device, l Load) (Rates, error)) *Memory {
	m := &Memory{device: d, buffers: map[*mem.Buffer]device.Buffer{}}
	info := d.Info()
	switch {
	case !info.Unified:
		m.reason = errDiscrete
		return m
	case info.Sharing == device.NotShared:
		m.reason = fmt.Errorf("%s has %s", info.Name, info.Sharing)
		return m
	}
	if rates == nil {
		rates = measure
	}
	if m.rates, m.reason = rates(d, l); m.reason != nil {
		m.reason = fmt.Errorf("%s could not be measured: %w", info.Sharing, m.reason)
		return m
	}
	m.reason = m.rates.prefersCopy(l)
	return m
}

// errDiscrete is the reason for a device with memory of its own.
var errDiscrete = errors.New("the device has memory of its own")

// tolerance is the part of a rate that is measurement noise.
const tolerance = 0.03

// prefersCopy returns why a second copy of the weights is better than one copy, or nil. The cores
// lose time in each read of the weights; a second copy costs the time to read and write the keys
// and values that are copied.
func (r Rates) prefersCopy(l Load) error {
	if l.Available >= 0 && l.Available < l.Weights {
		return nil // there is no room for it
	}
	seconds := func(bytes int64, rate float64) float64 { return float64(bytes) / rate }
	lost := seconds(l.CoresRead, r.Shared) - seconds(l.CoresRead, r.Private*(1-tolerance))
	if saved := seconds(2*l.Copied, r.Private); lost > saved {
		return fmt.Errorf("the cores read shared memory at %s and private memory at %s", rateText(r.Shared),
			rateText(r.Private))
	}
	return nil
}

func rateText(rate float64) string { return fmt.Sprintf("%.1f GB/s", rate/1e9) }

// Shares reports whether Alloc shares memory with the device, unless that refuses it.
func (m *Memory) Shares() bool { return m != nil && m.reason == nil }

// Alloc allocates memory that the device uses too, or private memory if it is not shared. It is a
// mem.Allocator.
func (m *Memory) Alloc(size int, o mem.Options) (*mem.Buffer, error) {
	if !m.Shares() {
		return mem.Alloc(size, o)
	}
	const page = 4096
	b, err := m.device.Alloc(uint64(max(1, size)+page-1)/page*page, device.Shared)
	if err != nil {
		m.mu.Lock()
		m.refused = err
		m.mu.Unlock()
		return mem.Alloc(size, o)
	}
	var wrapped *mem.Buffer
	wrapped = mem.Wrap(b.Host(), o, func() error {
		m.mu.Lock()
		delete(m.buffers, wrapped)
		m.mu.Unlock()
		return b.Free()
	})
	m.mu.Lock()
	m.buffers[wrapped] = b
	m.mu.Unlock()
	return wrapped, nil
}

// Buffer returns the device's buffer of memory that Alloc returned, or nil if it is private.
func (m *Memory) Buffer(b *mem.Buffer) device.Buffer {
	if m == nil {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if shared, ok := m.buffers[b]; ok {
		return shared
	}
	return nil
}

// Note describes where weights and KV cache are if a device holds copies of so many bytes. It is ""
// for a device with memory of its own.
func (m *Memory) Note(copied uint64) string {
	if m == nil || m.reason == errDiscrete {
		return ""
	}
	if copied == 0 {
		return fmt.Sprintf("weights and KV cache exist once, in %s (the cores read it at %s, private memory at %s)",
			m.device.Info().Sharing, rateText(m.rates.Shared), rateText(m.rates.Private))
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return fmt.Sprintf("the device holds a second copy of %s of weights and KV cache: %v",
		mem.FormatBytes(int64(copied)), cmp.Or(m.reason, m.refused, errors.New("they cannot be shared")))
}
