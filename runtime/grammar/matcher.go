package grammar

import (
	"fmt"
	"math"
)

// Grammar is what answers must be in. It is immutable.
type Grammar struct{ program *program }

// Matcher follows one answer. It is not safe for use by several goroutines.
type Matcher struct {
	v   *Vocab
	m   *machine
	at  *state
	way []*state // states at the depths of the trie that is walked
	own Mask     // near the end of an answer, which is not kept
	// least is the smallest cost behind a token that the last fill met.
	least float64
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
	m := &Matcher{v: v, m: newMachine(g.program), way: make([]*state, maxTokenBytes+1), most: answerWork}
	m.at = m.m.start()
	return m
}

// Mask are the tokens that may come next, where left tokens are left to generate, this one among
// them. Near the end those are left out behind which the answer could no longer be ended, as long
// as any way to end it is left. The mask is valid until the next call.
func (m *Matcher) Mask(left int) *Mask {
	s := m.at
	m.most = max(m.most, m.m.work) + maskWork
	if s.mask == nil {
		s.mask = &Mask{bits: make([]uint64, words64(m.v.size))}
		s.masked = m.fill(s, s.mask, math.Inf(1))
		m.m.bytes += int64(8*len(s.mask.bits)) + 32
	}
	most := float64(max(left-2, 0)) // one more token ends the answer
	if most >= s.masked {
		return s.mask
	}
	if m.own.bits == nil {
		m.own.bits = make([]uint64, words64(m.v.size))
	}
	for range 2 {
		clear(m.own.bits)
		m.least = math.Inf(1)
		m.fill(s, &m.own, most)
		if m.own.count > 0 {
			return &m.own
		}
		most = m.least // too few are left: those that come nearest to the end
	}
	return s.mask
}

// Allowed is Mask as bits: token 64i+j is bit j of word i.
func (m *Matcher) Allowed(left int) []uint64 { return m.Mask(left).bits }

// fill adds the tokens that s allows and behind which the shortest end costs at most most bytes; it
// returns the greatest of these costs.
func (m *Matcher) fill(s *state, to *Mask, most float64) float64 {
	worst := 0.0
	if s.end {
		for _, id := range m.v.ends {
			to.add(id)
		}
	}
	whole := s.run > 0 && s.after <= most && (s.run >= plainChars || s.alone)
	if whole {
		for i, w := range m.v.upTo[min(s.run, plainChars)] {
			to.bits[i] |= w
		}
		worst = s.after
	} else {
		worst = m.walk(&m.v.plain, s, to, most, true)
	}
	worst = max(worst, m.walk(&m.v.rest, s, to, most, false))
	to.recount()
	return worst
}

// walk adds the tokens of a trie. In the trie of plain tokens all that is below a node is added at
// once where the state behind it takes any characters.
func (m *Matcher) walk(t *trie, s *state, to *Mask, most float64, plain bool) float64 {
	worst := 0.0
	m.way[0] = s
	for i := int32(0); i < int32(len(t.nodes)); {
		n := &t.nodes[i]
		if n.depth > 0 && m.m.work > m.most {
			i = n.skip // beyond the budget tokens of one byte go on
			continue
		}
		at := m.m.after(m.way[n.depth], n.b)
		if at == m.m.dead {
			i = n.skip
			continue
		}
		m.way[n.depth+1] = at
		last, next, cost := n.to, i+1, at.cost
		if plain && at.run >= plainChars && at.after <= most {
			last, next, cost = n.past, n.skip, at.after
		}
		if last > n.from {
			m.least = min(m.least, cost)
		}
		if last > n.from && cost <= most {
			for _, id := range t.tokens[n.from:last] {
				to.add(id)
			}
			worst = max(worst, cost)
		}
		i = next
	}
	return worst
}

// Accept goes on behind a token that was drawn. A token that the mask does not have is refused and
// changes nothing.
func (m *Matcher) Accept(id int32) error {
	for _, end := range m.v.ends {
		if id == end && m.at.end {
			return nil
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
	m.at = m.m.shrink(at)
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
	m.at = m.m.shrink(at)
	return nil
}
