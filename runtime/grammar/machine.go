package grammar

import (
	"cmp"
	"math"
	"slices"
	"unicode/utf8"

	"sandwich/runtime/grammar/internal/automaton"
)

// above returns the state for a state of the program over a stack. Walks reach the same few such
// states again and again at the ends of multi-byte characters.
func (m *machine) above(to int32, base *node) *state {
	e := &m.entered[uint32(to)%manyEntered]
	if e.at == nil || e.to != to || e.base != base {
		*e = entry{to, base, m.closure(m.node(to, 0, base))}
	}
	return e.at
}

func newMachine(p *automaton.Program) *machine {
	return &machine{p: p, nodes: map[nodeKey]*node{}, states: map[stackName]*state{}, dead: &state{}}
}

func (m *machine) start() *state { return m.closure(m.node(m.p.Start, 0, nil)) }

// node returns the node of a stack.
func (m *machine) node(s, count int32, parent *node) *node {
	var above **node
	if parent != nil {
		if parent.above == nil {
			parent.above = new([kept]*node)
		}
		above = &parent.above[uint32(s)%kept]
		if n := *above; n != nil && n.state == s && n.count == count {
			return n
		}
	}
	k := nodeKey{s, count, parent}
	if n := m.nodes[k]; n != nil {
		if above != nil {
			*above = n
		}
		return n
	}
	m.ids++
	n := &node{state: s, count: count, parent: parent, id: m.ids}
	n.cost = m.p.Distance(s, count)
	var below stackName
	if parent != nil {
		n.cost += parent.cost
		below = parent.name
	}
	n.name = below.on(s, count)
	if m.bytes <= stateBytes {
		m.nodes[k] = n
		m.bytes += 160
		if above != nil {
			*above = n
		}
	}
	return n
}

// intern returns the state with the given stacks.
func (m *machine) intern(items []*node, end bool) *state {
	if len(items) == 0 && !end {
		return m.dead
	}
	name := nameOf(items, end)
	if s := m.states[name]; s != nil {
		return s
	}
	s := &state{name: name, items: slices.Clone(items), end: end, cost: math.Inf(1)}
	if end {
		s.cost = 0
	}
	for _, n := range items {
		s.cost = min(s.cost, n.cost)
	}
	for _, n := range items {
		for _, e := range m.p.States[n.state].Edges {
			s.bytes.Add(e.ByteRange)
		}
	}
	m.findFree(s)
	if m.bytes <= stateBytes {
		m.states[name] = s
		m.bytes += int64(360 + 8*len(items))
	}
	return s
}

// after returns the state after one more byte, or m.dead if the byte is not allowed.
func (m *machine) after(s *state, b byte) *state {
	if s.again != nil && b < utf8.RuneSelf && s.loop.Bytes.Has(b) {
		return s.again
	}
	if s.next != nil {
		if t := s.next[b]; t != nil {
			return t
		}
		return m.step(s, b)
	}
	for i := range s.near {
		if v := &s.near[i]; v.Lo <= b && b <= v.Hi {
			return v.to
		}
	}
	return m.step(s, b)
}

// manyMoves is the number of transitions of a state that are kept as a list instead of a table:
// most states are visited by only one walk.
const manyMoves = 24

// step computes a missing transition. It covers all adjacent bytes that no edge distinguishes: most
// letters of a text lead to the same state, and closures take most of the time of a mask.
func (m *machine) step(s *state, b byte) *state {
	if !s.bytes.Has(b) {
		return m.dead
	}
	to, alike := m.to[:0], automaton.ByteRange{Lo: 0, Hi: math.MaxUint8}
	for _, n := range s.items {
		for _, e := range m.p.States[n.state].Edges {
			switch {
			case e.Hi < b:
				alike.Lo = max(alike.Lo, e.Hi+1)
			case e.Lo > b:
				alike.Hi = min(alike.Hi, e.Lo-1)
			default:
				alike.Lo, alike.Hi = max(alike.Lo, e.Lo), min(alike.Hi, e.Hi)
				to = append(to, m.node(e.To, 0, n.parent))
			}
		}
	}
	m.to = to
	m.work += int64(len(s.items))
	t := m.dead
	if len(to) > 0 {
		t = m.closure(to...)
	}
	if m.bytes > stateBytes {
		return t // states beyond the limit are not cached
	}
	if s.next == nil && len(s.near) < manyMoves {
		s.near = append(s.near, move{alike, t})
		m.bytes += 24
		return t
	}
	if s.next == nil {
		s.next = new([256]*state)
		for _, v := range s.near {
			s.keep(v)
		}
		s.near = nil
		m.bytes += 2048
	}
	s.keep(move{alike, t})
	return t
}

// keep stores a transition in the table.
func (s *state) keep(v move) {
	for b := int(v.Lo); b <= int(v.Hi); b++ {
		s.next[b] = v.to
	}
}

// shrink drops all states except s if they take too much of limit bytes, and returns a new copy of
// s. The limit for a single mask is stateBytes, so that no mask depends on limit.
func (m *machine) shrink(s *state, limit int64) *state {
	if m.bytes <= limit/2 {
		return s
	}
	m.bytes, m.entered, m.tails = 0, [manyEntered]entry{}, [manyTails]tailKept{}
	m.nodes, m.states = map[nodeKey]*node{}, map[stackName]*state{}
	moved := map[*node]*node{}
	var move func(n *node) *node
	move = func(n *node) *node {
		if n == nil || moved[n] != nil {
			return moved[n]
		}
		moved[n] = m.node(n.state, n.count, move(n.parent))
		return moved[n]
	}
	items := make([]*node, len(s.items))
	for i, n := range s.items {
		items[i] = move(n)
	}
	return m.intern(items, s.end)
}

// maxClosed is the largest number of visited stacks for which a closure is cached.
const maxClosed = 64

// closure returns the state of all stacks that the given stacks reach without reading a byte. Only
// few stacks lead to the many states of combined patterns, so the closure of each stack is cached.
func (m *machine) closure(from ...*node) *state {
	if m.bytes > stateBytes {
		return m.closeAll(from)
	}
	for _, n := range from {
		if n.closed == nil && !m.close(n) {
			return m.closeAll(from)
		}
	}
	m.marks++
	items, end := m.items[:0], false
	for i := len(from) - 1; i >= 0; i-- { // in the order of closeAll
		c := from[i].closed
		end = end || c.end
		for _, n := range c.items {
			if n.mark != m.marks {
				n.mark = m.marks
				items = append(items, n)
			}
		}
		m.work += int64(1 + len(c.items))
	}
	m.items = items
	return m.intern(m.nearest(items), end)
}

// close caches the closure of a stack. It returns false if the closure is too large.
func (m *machine) close(n *node) bool {
	items, end, met := m.follow([]*node{n}, maxClosed)
	m.work += int64(met)
	if met > maxClosed {
		return false
	}
	n.closed = &closed{slices.Clone(items), end}
	m.bytes += int64(48 + 8*len(items))
	return true
}

// closeAll is closure without the cache.
func (m *machine) closeAll(from []*node) *state {
	items, end, met := m.follow(from, maxStacks)
	m.work += int64(met)
	m.cut = m.cut || met > maxStacks
	return m.intern(m.nearest(items), end)
}

// nearest returns the items that a state keeps: those nearest to the end of the answer.
func (m *machine) nearest(items []*node) []*node {
	if len(items) <= maxItems {
		return items
	}
	slices.SortFunc(items, func(a, b *node) int { return cmp.Or(cmp.Compare(a.cost, b.cost), cmp.Compare(a.id, b.id)) })
	m.cut = true
	return items[:maxItems]
}

// follow returns the closure of some stacks. It stops once it has visited more than limit stacks
// and found one with edges; met is the number of visited stacks.
func (m *machine) follow(from []*node, limit int) (items []*node, end bool, met int) {
	m.marks++
	m.stack, items = m.stack[:0], m.items[:0]
	for _, n := range from {
		m.push(n)
	}
	for ; len(m.stack) > 0 && (met <= limit || len(items) == 0); met++ {
		n := m.stack[len(m.stack)-1]
		m.stack = m.stack[:len(m.stack)-1]
		s := &m.p.States[n.state]
		if len(s.Edges) > 0 {
			items = append(items, n)
		}
		if s.Final {
			if n.parent == nil {
				end = true
			} else {
				m.push(n.parent)
			}
		}
		for _, e := range s.Eps {
			m.push(m.node(e, 0, n.parent))
		}
		for _, c := range s.Calls {
			m.push(m.node(c.Start, 0, m.back(c.Back, n.parent)))
		}
		if s.Loop != nil {
			m.around(n, s.Loop)
		}
	}
	m.items = items
	return items, end, met
}

// maxStacks limits the stacks that are visited for one state, and maxItems those that a state
// keeps. Only extremely ambiguous grammars reach these limits; beyond them some valid answers are
// lost, but no invalid answer is allowed.
const (
	maxStacks = 1 << 13
	maxItems  = 1 << 11
)

func (m *machine) push(n *node) {
	if n.mark != m.marks {
		n.mark = m.marks
		m.stack = append(m.stack, n)
	}
}

// back returns the stack to return to after a call. If nothing remains to be done in the caller it
// is the caller's caller, so that lists written as recursion do not grow the stack.
func (m *machine) back(s int32, parent *node) *node {
	st := &m.p.States[s]
	if st.Final && len(st.Edges)+len(st.Eps)+len(st.Calls) == 0 && st.Loop == nil {
		return parent
	}
	return m.node(s, 0, parent)
}

// around pushes the stacks for another round of a loop, for leaving it, or both.
func (m *machine) around(n *node, l *automaton.LoopState) {
	if n.count >= l.Least {
		m.push(m.node(l.Next, 0, n.parent))
	}
	if l.Most >= 0 && n.count >= l.Most {
		return
	}
	count := n.count + 1
	if l.Most < 0 {
		count = min(count, l.Least)
	}
	m.push(m.node(l.Body, 0, m.node(n.state, count, n.parent)))
}
