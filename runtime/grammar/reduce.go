package grammar

import (
	"cmp"
	"slices"
)

// inline replaces the calls of rules that are called once. This makes stacks shorter, and common
// prefixes of alternatives in different rules can be merged.
func (b *builder) inline(root ruleID) {
	type site struct{ state, n int32 }
	sites := map[int32]site{} // by the start of the rule
	use := func(start int32, at int32) {
		s := sites[start]
		sites[start] = site{at, s.n + 1}
	}
	for i := range b.states {
		for _, c := range b.states[i].calls {
			use(c.start, int32(i))
		}
		if l := b.states[i].loop; l != nil {
			use(l.body, int32(i))
			use(l.body, int32(i)) // twice, so that it is not inlined
		}
	}
	for i := range b.rules {
		r := &b.rules[i]
		s := sites[r.start]
		if s.n != 1 || ruleID(i) == root {
			continue
		}
		from := &b.states[s.state]
		at := slices.IndexFunc(from.calls, func(c callEdge) bool { return c.start == r.start })
		back := from.calls[at].back
		from.calls = slices.Delete(from.calls, at, at+1)
		b.eps(s.state, r.start)
		b.states[r.end].final = false
		b.eps(r.end, back)
		r.inlined = true
	}
}

// merger merges states that are reached by the same texts: alternatives with a common prefix share
// their states until they differ, so that a set of tools or a long anyOf needs only one stack.
type merger struct {
	*builder
	into []int32 // number of edges into a state; one more if the state must not be merged
	met  []int32 // number of the state plus 1 that last had an empty edge to this one
	done []bool
	todo []int32
}

// mergePrefixes merges, from the start of each rule, states with a single incoming edge if these
// edges come from the same state and have the same label.
func (b *builder) mergePrefixes() {
	n := len(b.states)
	m := &merger{builder: b, into: make([]int32, n), met: make([]int32, n), done: make([]bool, n)}
	for i := range b.states {
		s := &b.states[i]
		for _, e := range s.edges {
			m.into[e.to]++
		}
		for _, e := range s.eps {
			m.into[e]++
		}
		for _, c := range s.calls {
			m.into[c.back]++
			m.into[c.start] += 2
		}
		if s.loop != nil {
			m.into[s.loop.next] += 2
			m.into[s.loop.body] += 2
			m.into[i] += 2
		}
	}
	for _, w := range b.wholes {
		m.into[b.rules[w.rule].start]++ // finish looks at it
	}
	for i := range b.rules {
		if !b.rules[i].inlined {
			m.into[b.rules[i].start]++
			m.todo = append(m.todo, b.rules[i].start)
		}
	}
	for i := range b.states {
		if l := b.states[i].loop; l != nil {
			m.todo = append(m.todo, l.body)
		}
	}
	for len(m.todo) > 0 {
		at := m.todo[len(m.todo)-1]
		m.todo = m.todo[:len(m.todo)-1]
		if !m.done[at] {
			m.done[at] = true
			m.merge(at)
		}
	}
}

// merge merges the successors of a state.
func (m *merger) merge(at int32) {
	s := &m.states[at]
	if s.loop == nil {
		m.absorb(at, s)
	}
	m.meter.work(4 * (1 + len(s.edges) + len(s.eps) + len(s.calls)))
	slices.SortFunc(s.edges, func(a, b edge) int {
		return cmp.Or(cmp.Compare(a.lo, b.lo), cmp.Compare(a.hi, b.hi), cmp.Compare(a.to, b.to))
	})
	s.edges = mergeAlike(m, s.edges, func(a, b edge) bool { return a.byteRange == b.byteRange },
		func(e *edge) *int32 { return &e.to })
	slices.SortFunc(s.calls, func(a, b callEdge) int {
		return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(a.back, b.back))
	})
	s.calls = mergeAlike(m, s.calls, func(a, b callEdge) bool { return a.start == b.start },
		func(c *callEdge) *int32 { return &c.back })
	m.todo = append(m.todo, s.eps...)
	for _, e := range s.edges {
		m.todo = append(m.todo, e.to)
	}
	for _, c := range s.calls {
		m.todo = append(m.todo, c.back)
	}
	if s.loop != nil {
		m.todo = append(m.todo, s.loop.next)
	}
}

// absorb copies successors without a label and with a single incoming edge into s, and drops
// duplicate edges.
func (m *merger) absorb(at int32, s *pstate) {
	var kept []int32
	for i := 0; i < len(s.eps); i++ { // take appends to s.eps
		q := s.eps[i]
		if q == at || m.met[q] == at+1 {
			m.into[q]--
			continue
		}
		m.met[q] = at + 1
		if t := &m.states[q]; m.into[q] == 1 && t.loop == nil {
			m.take(s, t)
		} else {
			kept = append(kept, q)
		}
	}
	s.eps = kept
}

// take moves all edges of t to s.
func (m *merger) take(s, t *pstate) {
	s.edges = append(s.edges, t.edges...)
	s.eps = append(s.eps, t.eps...)
	s.calls = append(s.calls, t.calls...)
	s.final = s.final || t.final
	*t = pstate{}
}

// mergeAlike merges the targets of sorted edges with the same label, if they have no other incoming
// edges.
func mergeAlike[T any](m *merger, ways []T, alike func(a, b T) bool, target func(*T) *int32) []T {
	out := ways[:0]
	for i := range ways {
		w := ways[i]
		if n := len(out); n > 0 && alike(out[n-1], w) {
			a, b := *target(&out[n-1]), *target(&w)
			if a == b {
				m.into[a]--
				continue
			}
			if m.into[a] == 1 && m.into[b] == 1 {
				m.take(&m.states[a], &m.states[b])
				m.into[b] = 0
				continue
			}
		}
		out = append(out, w)
	}
	clear(ways[len(out):])
	return out
}
