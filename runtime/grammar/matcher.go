package grammar

import (
	"slices"

	"sandwich/runtime/grammar/internal/automaton"
)

// Grammar is a compiled grammar. It may be used concurrently: answers share its masks, which do not
// change after they are created.
type Grammar struct {
	program *automaton.Program
	masks   maskCache
}

func newGrammar(p *automaton.Program, memory *Memory) *Grammar {
	return &Grammar{program: p, masks: maskCache{memory: memory}}
}

// Matcher follows one answer. It must not be used concurrently.
type Matcher struct {
	v     *Vocab
	of    *Grammar
	m     *machine
	at    *state
	parts vocabParts
	spans []stretch
	path  []*kindState
	own   Mask // mask near the end of an answer, cached for one state
	// ownAt is the state of own, and ownMax the cost that was allowed.
	ownAt  *state
	ownMax float64
	// loop are the tokens that continue in a free loop, some a set of tokens of which some are
	// wanted.
	loop, some Mask
	// min is the smallest cost after a token in the last fill.
	min float64
	// deepest is the length in bytes of the longest tokens that are visited.
	deepest uint16
	// max is the limit of m.work for the current mask, spare the rest of answerWork, and limited
	// reports that a mask was cut short by these limits.
	max, spare int64
	limited    bool
	running    bool // between Matcher or Again and End
}

// Limits of the work for masks, counted in visited stacks of some tens of nanoseconds each. Every
// mask may take maskWork. Work beyond that is taken from answerWork, at most burstWork per mask. A
// mask that exceeds the limits is cut short: it contains at least one token, and only tokens that
// may follow. Ordinary grammars stay far below.
const (
	answerWork = 1 << 22
	burstWork  = 1 << 20
	maskWork   = 1 << 16
)

// bounded reports whether the current mask may be cut short, so that it may depend on earlier ones.
func (m *Matcher) bounded() bool { return m.m.cut || m.m.work > m.max || m.m.bytes > stateBytes }

// exhausted reports whether the work for a mask must stop. An empty mask gets additional work for
// tokens of one byte.
func (m *Matcher) exhausted(to *Mask) bool {
	return m.m.work > m.max+maskWork && slices.ContainsFunc(to.bits, func(w uint64) bool { return w != 0 })
}
