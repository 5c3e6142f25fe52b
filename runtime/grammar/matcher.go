package grammar

import (
	"fmt"
	"math"
	"slices"
)

// Grammar is what answers must be in. It may be used concurrently: answers share masks, which do
// not change once they are made.
type Grammar struct {
	program *program
	masks   shelf
}

func newGrammar(p *program, m *Meter) *Grammar {
	memory := m.limits.Memory
	if memory == nil {
		memory = NewMemory()
	}
	return &Grammar{program: p, masks: shelf{memory: memory}}
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
	own   Mask // near the end of an answer, which is kept for its state alone
	// ownAt is that state, and ownMost the cost that was allowed.
	ownAt   *state
	ownMost float64
	// loop are tokens that go on in a loop, some those of which some are wanted.
	loop, some Mask
	// least is the smallest cost behind a token that the last fill met.
	least float64
	// deepest is the length of the longest tokens that are walked to.
	deepest uint16
	// most is the work up to which the machine may go for the present mask, spare what is left of
	// answerWork, and limited tells that a mask was cut short by them.
	most, spare int64
	limited     bool
	running     bool // between Matcher or Again and End
}

// Limits of the work for masks. It is counted in stacks that are looked at, some tens of
// nanoseconds each. Every mask has maskWork, and what it takes beyond that is spared from
// answerWork, at most burstWork at a time. A mask that exceeds them is cut short: it still holds a
// token, and only tokens that may follow. Grammars of practical use stay far below.
const (
	answerWork = 1 << 22
	burstWork  = 1 << 20
	maskWork   = 1 << 16
)

// stateBytes bounds the states that are made for one mask; those beyond it are made again each time
// that they are met.
const stateBytes = 16 << 20

// Matcher starts an answer of tokens of the vocabulary. End ends it.
func (g *Grammar) Matcher(v *Vocab) *Matcher {
	m := &Matcher{v: v, of: g, m: newMachine(g.program), deepest: maxTokenBytes}
	m.begin()
	return m
}

// begin starts an answer: it counts the answer and takes the parts of the vocabulary.
func (m *Matcher) begin() {
	m.running, m.spare = true, answerWork
	m.of.masks.memory.answers.Add(1)
	m.at = m.m.start()
	m.parts = m.v.prepare(m.of.program)
	m.of.ahead(m.v)
}

// Again starts another answer with the states and masks that earlier ones made, after End returned
// true.
func (m *Matcher) Again() { m.begin() }

// End ends the answer, whose share of the memory and parts of the vocabulary are free for others.
// It reports whether Again may start another one: masks that were cut short must not be used again,
// since they depend on the earlier answers. Further calls do nothing.
func (m *Matcher) End() bool {
	if m.running {
		m.running = false
		m.of.masks.memory.answers.Add(-1)
		m.v.release(m.parts)
		m.parts = vocabParts{}
	}
	return !m.limited
}

// Mask returns the tokens that may come next, where left tokens are left to generate, this one
// among them. Near the end it leaves out tokens after which the answer could no longer be ended, as
// long as any way to end it is left. The mask is valid until the next call.
func (m *Matcher) Mask(left int) *Mask {
	begun := m.m.work
	m.most = begun + maskWork + min(m.spare, burstWork)
	defer func() {
		m.limited = m.limited || m.bounded()
		m.spare -= min(m.spare, max(0, m.m.work-begun-maskWork))
	}()
	s := m.at
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

// maskOf makes the mask of a state without regard to the tokens left, or takes it from the shelf.
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

// bounded reports whether the present mask may be cut short, so that it may depend on earlier ones.
func (m *Matcher) bounded() bool { return m.m.cut || m.m.work > m.most || m.m.bytes > stateBytes }

// exhausted reports whether a mask that took all of its work is left as it is. Until it has a
// token, and for a while longer, tokens of one byte are added.
func (m *Matcher) exhausted(to *Mask) bool {
	return m.m.work > m.most+maskWork && slices.ContainsFunc(to.bits, func(w uint64) bool { return w != 0 })
}

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
	m.at = m.m.shrink(at, m.of.masks.memory.statesOf())
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
	m.at = m.m.shrink(at, m.of.masks.memory.statesOf())
	return nil
}

// Memory returns about how many bytes of states are kept of the answers that this Matcher followed,
// without those of the Grammar.
func (m *Matcher) Memory() int64 { return m.m.bytes }
