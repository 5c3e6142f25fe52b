package grammar

import (
	"math"
	"slices"
	"unicode/utf8"

	"sandwich/runtime/grammar/internal/automaton"
)

// node is a stack of the program: the state on top, the completed rounds of its loop, and the stack
// below. Equal stacks share one node, so that they can be compared as pointers.
type node struct {
	state, count int32
	parent       *node
	id           uint32
	mark         uint32 // the last closure that visited it
	name         stackName
	above        *[kept]*node // cache of stacks with one more state on top
	closed       *closed      // its closure; nil until needed
	cost         float64      // bytes of the shortest completion of the answer
}

// stackName identifies a stack by its content, across machines of the same program.
type stackName [2]uint64

// on returns the name of the stack with one more state on top.
func (n stackName) on(state, count int32) stackName {
	x := uint64(uint32(state))<<32 | uint64(uint32(count))
	return stackName{automaton.Mixed(n[0] ^ x), automaton.Mixed(n[1] + 3*x + 1)}
}

// nameOf returns the name of a set of stacks, regardless of their order.
func nameOf(items []*node, end bool) (all stackName) {
	if end {
		all = stackName{1, 1}
	}
	for _, n := range items {
		all[0] += automaton.Mixed(n.name[0])
		all[1] += automaton.Mixed(n.name[1])
	}
	return all
}

type nodeKey struct {
	state, count int32
	parent       *node
}

// kept is the size of the cache node.above; a power of two.
const kept = 8

// state is a position of an answer: the stacks that the bytes so far allow, each at a state with
// edges.
type state struct {
	name   stackName
	items  []*node
	end    bool // the answer may end here
	cost   float64
	bytes  automaton.ByteSet // bytes that may follow
	near   []move            // known transitions
	next   *[256]*state      // the same as a table, if there are many
	mask   *Mask
	masked float64 // the largest cost after a token of mask
	text   int32   // region of texts that all stacks are in; 0: unknown; -1: none (textOf)
	kinds  *kindState
	freedom
}

// move is a transition: the state after each byte of a range.
type move struct {
	automaton.ByteRange
	to *state
}

// machine creates states on demand and caches them.
type machine struct {
	p      *automaton.Program
	nodes  map[nodeKey]*node
	states map[stackName]*state
	bytes  int64
	marks  uint32
	ids    uint32
	stack  []*node
	items  []*node
	to     []*node
	work   int64 // number of visited stacks
	cut    bool  // stacks were left out (mostStacks), which may depend on earlier states
	dead   *state
	tails  [manyTails]tailKept
	// entered is a cache of above.
	entered [manyEntered]entry
}

// entry is the state for a state of the program over a stack.
type entry struct {
	to   int32
	base *node
	at   *state
}

// manyEntered is the size of machine.entered; a power of two.
const manyEntered = 64

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

// shrink drops all states except s if they take too much of most bytes, and returns a new copy of
// s. The limit for a single mask is stateBytes, so that no mask depends on most.
func (m *machine) shrink(s *state, most int64) *state {
	if m.bytes <= most/2 {
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
