package grammar

import "sync/atomic"

// Default limits of a Memory in bytes.
const (
	maskBytes   = 16 << 20
	keptBytes   = 16 << 20
	leastStates = 64 << 10 // that each answer may keep, however many there are
)

// Memory bounds what the grammars of a process keep while answers are generated under them: masks,
// which answers under one grammar share, and states, of which each answer has its own. Where there
// is no room, masks and states are made again when they are needed. It may be used concurrently.
type Memory struct {
	masks, states int64        // limits in bytes
	used          atomic.Int64 // by masks
	answers       atomic.Int64 // that run
}

// NewMemory returns a Memory for all grammars of a process, to be named in Limits.
func NewMemory() *Memory { return &Memory{masks: maskBytes, states: keptBytes} }

// take reserves bytes for masks, if there is room.
func (m *Memory) take(n int64) bool {
	if m.used.Add(n) <= m.masks {
		return true
	}
	m.used.Add(-n)
	return false
}

// give returns reserved bytes.
func (m *Memory) give(n int64) { m.used.Add(-n) }

// statesOf returns how many bytes of states an answer may keep from one token to the next: an equal
// share of the answers that run.
func (m *Memory) statesOf() int64 {
	return max(leastStates, m.states/max(1, m.answers.Load()))
}

// Short reports whether the masks take more than three quarters of their room, so that grammars
// that no answer uses should be released.
func (m *Memory) Short() bool { return m.used.Load() > m.masks/4*3 }
