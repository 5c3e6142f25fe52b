package grammar

import (
	"math"
	"math/bits"
)

// freedom describes the free loop of a state.
type freedom struct {
	loop  *freeLoop // the largest; nil for none
	item  *node     // the stack that is in it
	run   int32     // the number of its characters that may follow; maxRun if unlimited
	after float64   // upper bound of the cost of the shortest end after such characters
	// The fields below are set by settle.
	known   bool
	counted bool   // characters are counted, so each leads to another state
	again   *state // the state after any of the characters, or nil
}

// findFree finds the free loop of a state.
func (m *machine) findFree(s *state) {
	size := 0
	for _, n := range s.items {
		l, run, after := m.freeAt(n)
		if l == nil {
			continue
		}
		c := bits.OnesCount64(l.of[0]) + bits.OnesCount64(l.of[1])
		if c > size || c == size && (run > s.run || run == s.run && after < s.after) {
			s.loop, s.item, s.run, s.after, size = l, n, run, after, c
		}
	}
	if m.p.open == nil || s.loop != nil && s.loop.of.covers(jsonClasses) && s.run >= longRun {
		return
	}
	for _, n := range s.items {
		o := m.p.open[n.state]
		after := float64(o.after)
		if n.parent != nil {
			after += n.parent.cost
		}
		open := s.loop == textLoop()
		if !open && o.run >= longRun || open && (o.run > s.run || o.run == s.run && after < s.after) {
			// The state after one of these characters is not unique, so the loop does not settle.
			s.freedom = freedom{loop: textLoop(), item: n, run: o.run, after: after, known: true}
		}
	}
}

// freeAt returns the free loop that a stack is in, the number of its characters that may follow,
// and the cost of the shortest end after them. It returns nil if the stack is in no free loop.
func (m *machine) freeAt(n *node) (l *freeLoop, run int32, after float64) {
	below := 0.0
	if n.parent != nil {
		below = n.parent.cost
	}
	if f := m.p.states[n.state].free; f > 0 {
		l = &m.p.free[f-1]
		return l, maxRun, m.p.distance(l.to, 0) + below
	}
	if n.parent == nil {
		return nil, 0, 0
	}
	loop := m.p.states[n.parent.state].loop
	if loop == nil || loop.free == 0 || loop.body != n.state {
		return nil, 0, 0
	}
	if run = maxRun; loop.most >= 0 {
		run = loop.most - n.parent.count + 1
	}
	return &m.p.free[loop.free-1], run, below
}

// settle reports whether every character of the free loop of s leads to the same state, s.again. In
// an uncounted loop, all stacks that read such characters must be in loops of the same classes, and
// s.again is the state after any number of them. In a counted loop, no other stack may read them.
func (m *machine) settle(s *state) bool {
	if s.known || s.loop == nil {
		return s.again != nil
	}
	s.known = true
	s.counted = m.p.states[s.item.state].free == 0
	if !s.counted {
		if again := m.roundOf(s, s.loop); again != nil && m.roundOf(again, s.loop) == again {
			s.again = again
		}
		return s.again != nil
	}
	if !s.loop.exact || !m.alone(s.items, s.item, s.loop) {
		return false
	}
	n := s.item.parent
	if m.alone(m.closure(m.node(m.p.states[n.state].loop.next, 0, n.parent)).items, nil, s.loop) {
		s.again = m.closure(n)
	}
	return s.again != nil
}

// roundOf returns the state after any character of a loop, if all stacks that read one are in loops
// of the same classes, such as alternatives that both allow any name of an additional member.
// Otherwise it returns nil.
func (m *machine) roundOf(s *state, l *freeLoop) *state {
	var to []*node
	for _, n := range s.items {
		if m.alone([]*node{n}, nil, l) {
			continue
		}
		f := m.p.states[n.state].free
		if f == 0 || !m.p.free[f-1].exact || m.p.free[f-1].of != l.of {
			return nil
		}
		to = append(to, m.node(m.p.free[f-1].to, 0, n.parent))
	}
	if len(to) == 0 {
		return nil
	}
	return m.closure(to...)
}

// alone reports whether no stack other than but reads a byte that starts a character of the loop.
func (m *machine) alone(items []*node, but *node, l *freeLoop) bool {
	for _, n := range items {
		if n == but {
			continue
		}
		var takes byteSet
		for _, e := range m.p.states[n.state].edges {
			takes.add(e.byteRange)
		}
		for i := range takes {
			if takes[i]&l.bytes[i] != 0 {
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
	if m.p.reached == nil {
		return true
	}
	for _, n := range s.items {
		for ; n != nil; n = n.parent {
			r := m.p.reached[n.state]
			if r&reachesBlank != 0 {
				return true
			}
			if r&reachesEnd == 0 {
				break
			}
		}
	}
	return false
}
