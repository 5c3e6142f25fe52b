package grammar

import (
	"fmt"
	"math"
)

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
	m.max = begun + maskWork + min(m.spare, burstWork)
	defer func() {
		m.limited = m.limited || m.bounded()
		m.spare -= min(m.spare, max(0, m.m.work-begun-maskWork))
	}()
	s := m.at
	if s.mask == nil {
		m.maskOf(s)
	}
	limit := float64(max(left-2, 0)) // one more token ends the answer
	if limit >= s.masked {
		return s.mask
	}
	if s == m.ownAt && limit == m.ownMax {
		return &m.own
	}
	m.ownAt, m.ownMax = s, limit
	for range 2 {
		m.own.clear(m.v.size)
		m.min = unbounded
		m.fill(s, &m.own, limit)
		if m.own.count > 0 {
			return &m.own
		}
		limit = m.min // left is too small; allow the tokens nearest to the end
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

// Memory returns the approximate size in bytes of the states that the Matcher has cached. The masks
// of the Grammar are not included.
func (m *Matcher) Memory() int64 { return m.m.bytes }

// Kept returns about how many bytes the cached masks of the grammar take.
func (g *Grammar) Kept() int64 {
	g.masks.mu.Lock()
	defer g.masks.mu.Unlock()
	return g.masks.bytes
}

// Memory returns about how many bytes the grammar takes, including its cached masks.
func (g *Grammar) Memory() int64 { return g.program.Bytes + g.Kept() }

// Release drops the cached masks. Running answers continue and may cache masks again.
func (g *Grammar) Release() {
	s := &g.masks
	s.mu.Lock()
	defer s.mu.Unlock()
	s.memory.give(s.bytes)
	s.by, s.followed, s.bytes = nil, nil, 0
}
