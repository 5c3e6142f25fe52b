package grammar

import (
	"math"
	"math/bits"

	"sandwich/runtime/grammar/internal/automaton"
)

// findFree finds the free loop of a state.
func (m *machine) findFree(s *state) {
	size := 0
	for _, n := range s.items {
		l, run, after := m.freeAt(n)
		if l == nil {
			continue
		}
		c := bits.OnesCount64(l.Of[0]) + bits.OnesCount64(l.Of[1])
		if c > size || c == size && (run > s.run || run == s.run && after < s.after) {
			s.loop, s.item, s.run, s.after, size = l, n, run, after, c
		}
	}
	if m.p.Open == nil || s.loop != nil && s.loop.Of.Covers(automaton.JSONClasses) && s.run >= longRun {
		return
	}
	for _, n := range s.items {
		o := m.p.Open[n.state]
		after := float64(o.After)
		if n.parent != nil {
			after += n.parent.cost
		}
		open := s.loop == automaton.TextLoop()
		if !open && o.Run >= longRun || open && (o.Run > s.run || o.Run == s.run && after < s.after) {
			// The state after one of these characters is not unique, so the loop does not settle.
			s.freedom = freedom{loop: automaton.TextLoop(), item: n, run: o.Run, after: after, known: true}
		}
	}
}

// freeAt returns the free loop that a stack is in, the number of its characters that may follow,
// and the cost of the shortest end after them. It returns nil if the stack is in no free loop.
func (m *machine) freeAt(n *node) (l *automaton.FreeLoop, run int32, after float64) {
	below := 0.0
	if n.parent != nil {
		below = n.parent.cost
	}
	if f := m.p.States[n.state].Free; f > 0 {
		l = &m.p.Free[f-1]
		return l, automaton.MaxRun, m.p.Distance(l.To, 0) + below
	}
	if n.parent == nil {
		return nil, 0, 0
	}
	loop := m.p.States[n.parent.state].Loop
	if loop == nil || loop.Free == 0 || loop.Body != n.state {
		return nil, 0, 0
	}
	if run = automaton.MaxRun; loop.Most >= 0 {
		run = loop.Most - n.parent.count + 1
	}
	return &m.p.Free[loop.Free-1], run, below
}

// settle reports whether every character of the free loop of s leads to the same state, s.again. In
// an uncounted loop, all stacks that read such characters must be in loops of the same classes, and
// s.again is the state after any number of them. In a counted loop, no other stack may read them.
func (m *machine) settle(s *state) bool {
	if s.known || s.loop == nil {
		return s.again != nil
	}
	s.known = true
	s.counted = m.p.States[s.item.state].Free == 0
	if !s.counted {
		if again := m.roundOf(s, s.loop); again != nil && m.roundOf(again, s.loop) == again {
			s.again = again
		}
		return s.again != nil
	}
	if !s.loop.Exact || !m.alone(s.items, s.item, s.loop) {
		return false
	}
	n := s.item.parent
	if m.alone(m.closure(m.node(m.p.States[n.state].Loop.Next, 0, n.parent)).items, nil, s.loop) {
		s.again = m.closure(n)
	}
	return s.again != nil
}

// roundOf returns the state after any character of a loop, if all stacks that read one are in loops
// of the same classes, such as alternatives that both allow any name of an additional member.
// Otherwise it returns nil.
func (m *machine) roundOf(s *state, l *automaton.FreeLoop) *state {
	var to []*node
	for _, n := range s.items {
		if m.alone([]*node{n}, nil, l) {
			continue
		}
		f := m.p.States[n.state].Free
		if f == 0 || !m.p.Free[f-1].Exact || m.p.Free[f-1].Of != l.Of {
			return nil
		}
		to = append(to, m.node(m.p.Free[f-1].To, 0, n.parent))
	}
	if len(to) == 0 {
		return nil
	}
	return m.closure(to...)
}

// alone reports whether no stack other than but reads a byte that starts a character of the loop.
func (m *machine) alone(items []*node, but *node, l *automaton.FreeLoop) bool {
	for _, n := range items {
		if n == but {
			continue
		}
		var takes automaton.ByteSet
		for _, e := range m.p.States[n.state].Edges {
			takes.Add(e.ByteRange)
		}
		for i := range takes {
			if takes[i]&l.Bytes[i] != 0 {
				return false
			}
		}
	}
	return true
}

// free returns an upper bound of the cost of the shortest end after tokens of the free loop's
// characters.
func (s *state) free() float64 { return math.Max(s.cost, s.after) }

// blankNear reports whether a control character may follow s after some such characters.
func (m *machine) blankNear(s *state) bool {
	if m.p.Reached == nil {
		return true
	}
	for _, n := range s.items {
		for ; n != nil; n = n.parent {
			r := m.p.Reached[n.state]
			if r&automaton.ReachesBlank != 0 {
				return true
			}
			if r&automaton.ReachesEnd == 0 {
				break
			}
		}
	}
	return false
}
