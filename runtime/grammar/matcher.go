package grammar

import (
	"fmt"
	"math"
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
	// ownAt is the state of own, and ownMost the cost that was allowed.
	ownAt   *state
	ownMost float64
	// loop are the tokens that continue in a free loop, some a set of tokens of which some are
	// wanted.
	loop, some Mask
	// least is the smallest cost after a token in the last fill.
	least float64
	// deepest is the length in bytes of the longest tokens that are visited.
	deepest uint16
	// most is the limit of m.work for the current mask, spare the rest of answerWork, and limited
	// reports that a mask was cut short by these limits.
	most, spare int64
	limited     bool
	running     bool // between Matcher or Again and End
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

// stateBytes limits the memory of states. States beyond it are not cached.
const stateBytes = 16 << 20

// Matcher starts an answer of tokens of the vocabulary. The caller must call End.
func (g *Grammar) Matcher(v *Vocab) *Matcher {
	m := &Matcher{v: v, of: g, m: newMachine(g.program), deepest: maxTokenBytes}
	m.begin()
	return m
}

// begin starts an answer: it counts the answer and acquires the parts of the vocabulary.
func (m *Matcher) begin() {
	m.running, m.spare = true, answerWork
	m.of.masks.memory.answers.Add(1)
	m.at = m.m.start()
	m.parts = m.v.prepare(m.of.program)
	m.of.ahead(m.v)
}

// Again starts another answer with the states and masks of earlier ones. It must be called only
// after End has returned true.
func (m *Matcher) Again() { m.begin() }

// End ends the answer and releases its share of the memory and of the vocabulary's parts. It
// reports whether Again may be called: masks that were cut short depend on earlier answers and must
// not be used again. Further calls do nothing.
func (m *Matcher) End() bool {
	if m.running {
		m.running = false
		m.of.masks.memory.answers.Add(-1)
		m.v.release(m.parts)
		m.parts = vocabParts{}
	}
	return !m.limited
}

// Mask returns the tokens that may come next. left is the number of tokens that may still be
// generated, including this one. Near the end, the mask excludes tokens after which the answer
// could not be completed, as long as other tokens exist. The mask is valid until the next call.
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
		most = m.least // left is too small; allow the tokens nearest to the end
	}
	m.ownAt = nil
	return s.mask
}

// maskOf computes the mask of a state for an unlimited number of tokens, or gets it from the cache.
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

// bounded reports whether the current mask may be cut short, so that it may depend on earlier ones.
func (m *Matcher) bounded() bool { return m.m.cut || m.m.work > m.most || m.m.bytes > stateBytes }

// exhausted reports whether the work for a mask must stop. An empty mask gets additional work for
// tokens of one byte.
func (m *Matcher) exhausted(to *Mask) bool {
	return m.m.work > m.most+maskWork && slices.ContainsFunc(to.bits, func(w uint64) bool { return w != 0 })
}

// Allowed returns Mask as bits: token 64i+j is bit j of word i.
func (m *Matcher) Allowed(left int) []uint64 { return m.Mask(left).bits }

// Only returns the single token that Mask allows. It returns false if the mask has other tokens.
func (m *Matcher) Only(left int) (id int32, ok bool) {
	if m.MustEnd() {
		return 0, false
	}
	return m.Mask(left).Only()
}

// Accept advances the answer by a generated token. If the mask does not contain the token, it
// returns an error and changes nothing.
func (m *Matcher) Accept(id int32) error {
	for _, end := range m.v.ends {
		switch {
		case id == end && m.at.end:
			return nil
		case id == end:
			return fmt.Errorf("token %d ends the answer before it is complete", id)
		}
	}
	if id < 0 || int(id) >= m.v.size || len(m.v.text[id]) == 0 {
		return fmt.Errorf("token %d is not a token of text", id)
	}
	at := m.at
	for _, b := range m.v.text[id] {
		if at = m.m.after(at, b); at == m.m.dead {
			return fmt.Errorf("the grammar does not allow token %d (%q) here", id, m.v.text[id])
		}
	}
	m.at = m.m.shrink(at, m.of.masks.memory.statesOf())
	return nil
}

// CanEnd reports whether the answer is complete.
func (m *Matcher) CanEnd() bool { return m.at.end }

// MustEnd reports whether the answer is complete and no byte may follow.
func (m *Matcher) MustEnd() bool { return m.at.end && len(m.at.items) == 0 }

// Needs returns the number of bytes of the shortest completion of the answer.
func (m *Matcher) Needs() int {
	if m.at.cost > math.MaxInt32 {
		return math.MaxInt32
	}
	return int(m.at.cost)
}

// AcceptText advances the answer by bytes, which need not be whole tokens.
func (m *Matcher) AcceptText(text []byte) error {
	at := m.at
	for i, b := range text {
		if at = m.m.after(at, b); at == m.m.dead {
			return fmt.Errorf("the grammar does not allow byte %d (%q) here", i, b)
		}
	}
	m.at = m.m.shrink(at, m.of.masks.memory.statesOf())
	return nil
}

// Memory returns about how many bytes of states the Matcher caches for the answers that it
// followed, without the masks of the Grammar.
func (m *Matcher) Memory() int64 { return m.m.bytes }
