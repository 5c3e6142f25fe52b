// Package traffic predicts whether forwards on a device and on the cores slow each other down
// because they read the same memory.
package traffic

import "time"

// Side is a processor that runs forwards.
type Side int

// The sides.
const (
	Cores Side = iota
	Device
	sides
)

// Work is the memory that a forward reads in addition to the weights, and how long it takes.
type Work struct {
	Positions int // of the KV cache, over all sequences
	Takes     time.Duration
}

// Monitor measures the flow of memory into each side, in bytes/s. It is not safe for concurrent
// use.
type Monitor struct {
	weights, position float64
	max               [sides]float64 // recent largest flow; 0: nothing is measured
}

const (
	// slowdown is the predicted sum of two flows, as a multiple of the largest measured one, from
	// which they contend.
	slowdown = 1.25
	// fade lowers the largest flow with each forward, so that one wrong measurement is forgotten.
	fade = 0.999
)

// New returns a Monitor for a model of the given bytes of weights and bytes of keys and values of a
// position.
func New(weights, position int64) *Monitor {
	return &Monitor{weights: float64(weights), position: float64(position)}
}

// flow returns the bytes/s of a forward, 0 if its time is not known.
func (m *Monitor) flow(w Work) float64 {
	if w.Takes <= 0 {
		return 0
	}
	return (m.weights + m.position*float64(w.Positions)) / w.Takes.Seconds()
}

// Learn takes a forward that ended into the measured flow of a side.
func (m *Monitor) Learn(s Side, w Work) { m.max[s] = max(fade*m.max[s], m.flow(w)) }

// Contend reports whether a forward on the cores and one on the device are predicted to read more
// per second than the largest flow that was measured on either side. It returns false until both
// sides have run a forward.
func (m *Monitor) Contend(cores, device Work) bool {
	if m.max[Cores] == 0 || m.max[Device] == 0 {
		return false
	}
	return m.flow(cores)+m.flow(device) > slowdown*max(m.max[Cores], m.max[Device])
}
