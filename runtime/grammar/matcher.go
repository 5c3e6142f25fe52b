package grammar

import (
	"fmt"
	"math"
	"sync/atomic"
)

// Grammar is what answers must be in. It may be used by several goroutines: what answers share are
// masks, which do not change once they are made.
type Grammar struct {
	program *program
	masks   shelf
	answers atomic.Int64 // that run at once, as Share was told
}

// Share tells how many answers under the grammar run at once from now on: they share the bytes that
// one may keep states in.
func (g *Grammar) Share(answers int) { g.answers.Store(int64(answers)) }

// statesOf is how many bytes of states an answer keeps from token to token.
func (g *Grammar) statesOf() int64 { return stateBytes / max(1, g.answers.Load()) }

// Matcher follows one answer. It is not safe for use by several goroutines.
type Matcher struct {
	v  *Vocab
	of *Grammar
	m  *machine
	at *state
	// parts are those of the vocabulary that the grammar has use for.
	parts map[classes]*slice
	// byKinds are the same by kinds of characters, by the region of texts.
	byKinds []*kindTrie
	spans   []stretch
	path    []*kindState
	own     Mask // near the end of an answer, which is kept for its state alone
	// ownAt is that state, and ownMost the cost that was allowed.
	ownAt   *state
	ownMost float64
	// loop are tokens that go on in a loop, some those of which some are wanted.
	loop, some Mask
	// least is the smallest cost behind a token that the last fill met.
	least float64
	// deepest is the length of the longest tokens that are walked to.
	deepest uint16
	// most is how much work the machine may have done.
	most int64
}

// Work is counted in stacks that are looked at, some tens of nanoseconds each: what an answer has
// at once, about a second, and what every mask adds. Grammars that are not ambiguous beyond use
// stay far below.
const (
	answerWork = 1 << 24
	maskWork   = 1 << 16
)

// Matcher starts an answer of tokens of the vocabulary.
func (g *Grammar) Matcher(v *Vocab) *Matcher {
	m := &Matcher{v: v, of: g, m: newMachine(g.program), deepest: maxTokenBytes,
		most: answerWork}
	m.at = m.m.start()
	m.parts, m.byKinds = v.prepare(g.program)
	g.ahead(v)
	return m
}

// Mask are the tokens that may come next, where left tokens are left to generate, this one among
// them. Near the end those are left out behind which the answer could no longer be ended, as long
// as any way to end it is left. The mask is valid until the next call.
func (m *Matcher) Mask(left int) *Mask {
	s := m.at
	m.most = max(m.most, m.m.work) + maskWork
	if s.mask == nil {
		m.maskOf(s)
	}
	most := float64(max(left-2, 0)) // one more token ends the answer
	if most >= s.masked {
		return s.mask
	}
	if s == m.ownAt && most == m.ownMost {
		return &m.own
	}
	m.ownAt, m.ownMost = s, most
	for range 2 {
		m.own.clear(m.v.size)
		m.least = unbounded
		m.fill(s, &m.own, most)
		if m.own.count > 0 {
			return &m.own
		}
		most = m.least // too few are left: those that come nearest to the end
	}
	m.ownAt = nil
	return s.mask
}

// maskOf makes the mask of a state without regard to what is left, or takes it from the shelf.
func (m *Matcher) maskOf(s *state) {
	key := maskKey{m.v, s.name}
	if k, ok := m.of.masks.get(key); ok {
		s.mask, s.masked = k.mask, k.masked
		return
	}
	s.mask = &Mask{bits: make([]uint64, words64(m.v.size))}
	s.masked = m.fill(s, s.mask, unbounded)
	if m.bounded() || !m.of.masks.put(key, keptMask{s.mask, s.masked}) {
		m.m.bytes += s.mask.memory()
	}
}

// bounded tells that masks may have been cut short, so that they may depend on what answers met
// before.
func (m *Matcher) bounded() bool { return m.m.cut || m.m.work > m.most || m.m.bytes > stateBytes }

// Allowed is Mask as bits: token 64i+j is bit j of word i.
func (m *Matcher) Allowed(left int) []uint64 { return m.Mask(left).bits }

// Only is the one token that Mask allows; not ok where it allows others.
func (m *Matcher) Only(left int) (id int32, ok bool) {
	if m.MustEnd() {
		return 0, false
	}
	return m.Mask(left).Only()
}

// Accept goes on behind a token that was drawn. A token that the mask does not have is refused and
// changes nothing.
func (m *Matcher) Accept(id int32) error {
	for _, end := range m.v.ends {
		switch {
		case id == end && m.at.end:
			return nil
		case id == end:
			return fmt.Errorf("token %d ends the answer before it is whole", id)
		}
	}
	if id < 0 || int(id) >= m.v.size || len(m.v.text[id]) == 0 {
		return fmt.Errorf("token %d is not one of the grammar's", id)
	}
	at := m.at
	for _, b := range m.v.text[id] {
		if at = m.m.after(at, b); at == m.m.dead {
			return fmt.Errorf("token %d (%q) does not go on as the grammar does", id, m.v.text[id])
		}
	}
	m.at = m.m.shrink(at, m.of.statesOf())
	return nil
}

// CanEnd tells whether the answer is whole; MustEnd, whether nothing may follow.
func (m *Matcher) CanEnd() bool { return m.at.end }

// MustEnd is CanEnd where no byte may follow.
func (m *Matcher) MustEnd() bool { return m.at.end && len(m.at.items) == 0 }

// Needs is how many bytes the shortest end of the answer takes from here.
func (m *Matcher) Needs() int {
	if m.at.cost > math.MaxInt32 {
		return math.MaxInt32
	}
	return int(m.at.cost)
}

// AcceptText goes on behind bytes, which need not be whole tokens.
func (m *Matcher) AcceptText(text []byte) error {
	at := m.at
	for i, b := range text {
		if at = m.m.after(at, b); at == m.m.dead {
			return fmt.Errorf("byte %d (%q) does not go on as the grammar does", i, b)
		}
	}
	m.at = m.m.shrink(at, m.of.statesOf())
	return nil
}

// Memory is about how many bytes are kept of answers that this Matcher followed, beside what the
// Grammar keeps.
func (m *Matcher) Memory() int64 { return m.m.bytes }
