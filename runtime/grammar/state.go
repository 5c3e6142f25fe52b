package grammar

import (
	"math"
	"slices"
	"unicode/utf8"
)

// node is a stack of the program: the state on top, the rounds of its loop that are done, and what
// lies below. Equal stacks are one node, so that they compare as pointers.
type node struct {
	state, count int32
	parent       *node
	id           uint32
	mark         uint32 // the closure that last met it
	name         stackName
	above        *[kept]*node // some of the stacks that have one more state on top
	closed       *closed      // what it leads to without a byte; nil before it was asked for
	cost         float64      // bytes of the shortest way to the end of everything
}

// stackName tells stacks apart that are of several machines of one program, by what is in them.
type stackName [2]uint64

// on is the name of a stack with one more state on top.
func (n stackName) on(state, count int32) stackName {
	x := uint64(uint32(state))<<32 | uint64(uint32(count))
	return stackName{mixed(n[0] ^ x), mixed(n[1] + 3*x + 1)}
}

// nameOf tells states apart as stackName does stacks, in whatever order these were met.
func nameOf(items []*node, end bool) (all stackName) {
	if end {
		all = stackName{1, 1}
	}
	for _, n := range items {
		all[0] += mixed(n.name[0])
		all[1] += mixed(n.name[1])
	}
	return all
}

type nodeKey struct {
	state, count int32
	parent       *node
}

// kept is how many stacks above one are found without the map; a power of two.
const kept = 8

// state is a position of an answer: the stacks that the bytes so far allow, each at a state with
// edges.
type state struct {
	name   stackName
	items  []*node
	end    bool // the answer may end here
	cost   float64
	bytes  byteSet      // that may follow
	near   []move       // the steps that were taken
	next   *[256]*state // the same, where they are many
	mask   *Mask
	masked float64 // the greatest cost behind a token of mask
	text   int32   // 1 and more: the region of texts that all stacks are in; -1: none (textOf)
	kinds  *kindState
	freedom
}

// move is a step: the state behind each byte of a range.
type move struct {
	byteRange
	to *state
}

// machine makes states as they are met and keeps them.
type machine struct {
	p      *program
	nodes  map[nodeKey]*node
	states map[stackName]*state
	bytes  int64
	marks  uint32
	ids    uint32
	stack  []*node
	items  []*node
	to     []*node
	work   int64 // stacks that were looked at
	cut    bool  // some were left out (mostStacks), which may depend on what was met before
	dead   *state
	tails  [manyTails]tailKept
	// entered are some of the states that above made last.
	entered [manyEntered]entry
}

// entry is the state at a state of the program over a stack.
type entry struct {
	to   int32
	base *node
	at   *state
}

// manyEntered is how many are found again without asking the map; a power of two.
const manyEntered = 64

// above is the state at a state of the program over a stack: where a character of several bytes
// ends, walks come to the same few again and again.
func (m *machine) above(to int32, base *node) *state {
	e := &m.entered[uint32(to)%manyEntered]
	if e.at == nil || e.to != to || e.base != base {
		*e = entry{to, base, m.closure(m.node(to, 0, base))}
	}
	return e.at
}

func newMachine(p *program) *machine {
	return &machine{p: p, nodes: map[nodeKey]*node{}, states: map[stackName]*state{}, dead: &state{}}
}

func (m *machine) start() *state { return m.closure(m.node(m.p.start, 0, nil)) }

// node finds or makes a stack.
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
	n.cost = m.p.distance(s, count)
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

// distance is how many bytes the shortest way to the end of the rule takes.
func (p *program) distance(s, count int32) float64 {
	l := p.states[s].loop
	if l == nil || count == 0 {
		return p.states[s].dist
	}
	d := p.states[l.next].dist
	if rounds := l.least - count; rounds > 0 {
		d += float64(rounds) * p.states[l.body].dist
	}
	return d
}

// intern finds or makes the state of the items.
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
		for _, e := range m.p.states[n.state].edges {
			s.bytes.add(e.byteRange)
		}
	}
	m.findFree(s)
	if m.bytes <= stateBytes {
		m.states[name] = s
		m.bytes += int64(360 + 8*len(items))
	}
	return s
}

// after is the state behind one more byte; m.dead where none allows it.
func (m *machine) after(s *state, b byte) *state {
	if s.again != nil && b < utf8.RuneSelf && s.loop.bytes.has(b) {
		return s.again
	}
	if s.next != nil {
		if t := s.next[b]; t != nil {
			return t
		}
		return m.step(s, b)
	}
	for i := range s.near {
		if v := &s.near[i]; v.lo <= b && b <= v.hi {
			return v.to
		}
	}
	return m.step(s, b)
}

// manyMoves is how many steps out of a state are kept as a list before it gets a table: most states
// are met once, by one walk.
const manyMoves = 24

// step is after where the byte was not met. What is behind it is behind all bytes around it that no
// edge tells apart: letters of a text mostly lead one way, and closures are most of a mask's time.
func (m *machine) step(s *state, b byte) *state {
	if !s.bytes.has(b) {
		return m.dead
	}
	to, alike := m.to[:0], byteRange{0, math.MaxUint8}
	for _, n := range s.items {
		for _, e := range m.p.states[n.state].edges {
			switch {
			case e.hi < b:
				alike.lo = max(alike.lo, e.hi+1)
			case e.lo > b:
				alike.hi = min(alike.hi, e.lo-1)
			default:
				alike.lo, alike.hi = max(alike.lo, e.lo), min(alike.hi, e.hi)
				to = append(to, m.node(e.to, 0, n.parent))
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
		return t // until shrink, states live as long as they are walked over
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

// keep puts a move into the table.
func (s *state) keep(v move) {
	for b := int(v.lo); b <= int(v.hi); b++ {
		s.next[b] = v.to
	}
}

// shrink forgets all states but s where they take more than most; it returns s made anew. One mask
// may take stateBytes for itself, so that none depends on most.
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
