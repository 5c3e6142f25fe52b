package grammar

import (
	"cmp"
	"slices"

	"sandwich/runtime/grammar/internal/automaton"
)

// closed is the closure of one stack: the stacks at states with edges that it reaches without
// reading a byte, and whether the answer may end there.
type closed struct {
	items []*node
	end   bool
}

// mostClosed is the largest number of visited stacks for which a closure is cached.
const mostClosed = 64

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
	items, end, met := m.follow([]*node{n}, mostClosed)
	m.work += int64(met)
	if met > mostClosed {
		return false
	}
	n.closed = &closed{slices.Clone(items), end}
	m.bytes += int64(48 + 8*len(items))
	return true
}

// closeAll is closure without the cache.
func (m *machine) closeAll(from []*node) *state {
	items, end, met := m.follow(from, mostStacks)
	m.work += int64(met)
	m.cut = m.cut || met > mostStacks
	return m.intern(m.nearest(items), end)
}

// nearest returns the items that a state keeps: those nearest to the end of the answer.
func (m *machine) nearest(items []*node) []*node {
	if len(items) <= mostItems {
		return items
	}
	slices.SortFunc(items, func(a, b *node) int { return cmp.Or(cmp.Compare(a.cost, b.cost), cmp.Compare(a.id, b.id)) })
	m.cut = true
	return items[:mostItems]
}

// follow returns the closure of some stacks. It stops once it has visited more than most stacks and
// found one with edges; met is the number of visited stacks.
func (m *machine) follow(from []*node, most int) (items []*node, end bool, met int) {
	m.marks++
	m.stack, items = m.stack[:0], m.items[:0]
	for _, n := range from {
		m.push(n)
	}
	for ; len(m.stack) > 0 && (met <= most || len(items) == 0); met++ {
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

// mostStacks limits the stacks that are visited for one state, and mostItems those that a state
// keeps. Only extremely ambiguous grammars reach these limits; beyond them some valid answers are
// lost, but no invalid answer is allowed.
const (
	mostStacks = 1 << 13
	mostItems  = 1 << 11
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
