package grammar

import "sync/atomic"

// Default limits of a Memory in bytes.
const (
	maskBytes = 16 << 20
	keptBytes = 16 << 20
	minStates = 64 << 10 // for each answer, regardless of their number
)

// Memory limits what the grammars of a process cache while answers are generated: masks, which all
// answers of a grammar share, and states, which belong to one answer. Masks and states that do not
// fit are computed again when they are needed. A Memory may be used concurrently.
type Memory struct {
	masks, states int64        // limits in bytes
	used          atomic.Int64 // bytes of masks
	answers       atomic.Int64 // running answers
}

// NewMemory returns a Memory with default limits for all grammars of a process; see Limits.
func NewMemory() *Memory { return &Memory{masks: maskBytes, states: keptBytes} }

// take reserves bytes for masks. It returns false if they do not fit.
func (m *Memory) take(n int64) bool {
	if m.used.Add(n) <= m.masks {
		return true
	}
	m.used.Add(-n)
	return false
}

// give releases reserved bytes.
func (m *Memory) give(n int64) { m.used.Add(-n) }

// statesOf returns how many bytes of states each answer may keep between tokens: an equal share of
// all running answers.
func (m *Memory) statesOf() int64 {
	return max(minStates, m.states/max(1, m.answers.Load()))
}

// Short reports whether masks use more than three quarters of their limit, so that the caller
// should release grammars that no answer uses.
func (m *Memory) Short() bool { return m.used.Load() > m.masks/4*3 }
