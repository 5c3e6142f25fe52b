package automaton

import (
	"cmp"
	"slices"
)

// inline replaces the calls of rules that are called once. This makes stacks shorter, and common
// prefixes of alternatives in different rules can be merged.
func (b *Builder) inline(root RuleID) {
	type site struct{ state, n int32 }
	sites := map[int32]site{} // by the start of the rule
	use := func(start int32, at int32) {
		s := sites[start]
		sites[start] = site{at, s.n + 1}
	}
	for i := range b.States {
		for _, c := range b.States[i].Calls {
			use(c.Start, int32(i))
		}
		if l := b.States[i].Loop; l != nil {
			use(l.Body, int32(i))
			use(l.Body, int32(i)) // twice, so that it is not inlined
		}
	}
	for i := range b.Rules {
		r := &b.Rules[i]
		s := sites[r.Start]
		if s.n != 1 || RuleID(i) == root {
			continue
		}
		from := &b.States[s.state]
		at := slices.IndexFunc(from.Calls, func(c callEdge) bool { return c.Start == r.Start })
		back := from.Calls[at].Back
		from.Calls = slices.Delete(from.Calls, at, at+1)
		b.Eps(s.state, r.Start)
		b.States[r.end].Final = false
		b.Eps(r.end, back)
		r.inlined = true
	}
}

// merger merges states that are reached by the same texts: alternatives with a common prefix share
// their states until they differ, so that a set of tools or a long anyOf needs only one stack.
type merger struct {
	*Builder
	into []int32 // number of edges into a state; one more if the state must not be merged
	met  []int32 // number of the state plus 1 that last had an empty edge to this one
	done []bool
	todo []int32
}

// mergePrefixes merges, from the start of each rule, states with a single incoming edge if these
// edges come from the same state and have the same label.
func (b *Builder) mergePrefixes() {
	n := len(b.States)
	m := &merger{Builder: b, into: make([]int32, n), met: make([]int32, n), done: make([]bool, n)}
	for i := range b.States {
		s := &b.States[i]
		for _, e := range s.Edges {
			m.into[e.To]++
		}
		for _, e := range s.Eps {
			m.into[e]++
		}
		for _, c := range s.Calls {
			m.into[c.Back]++
			m.into[c.Start] += 2
		}
		if s.Loop != nil {
			m.into[s.Loop.Next] += 2
			m.into[s.Loop.Body] += 2
			m.into[i] += 2
		}
	}
	for _, w := range b.Wholes {
		m.into[b.Rules[w.Rule].Start]++ // finish looks at it
	}
	for i := range b.Rules {
		if !b.Rules[i].inlined {
			m.into[b.Rules[i].Start]++
			m.todo = append(m.todo, b.Rules[i].Start)
		}
	}
	for i := range b.States {
		if l := b.States[i].Loop; l != nil {
			m.todo = append(m.todo, l.Body)
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
	s := &m.States[at]
	if s.Loop == nil {
		m.absorb(at, s)
	}
	m.Meter.Work(4 * (1 + len(s.Edges) + len(s.Eps) + len(s.Calls)))
	slices.SortFunc(s.Edges, func(a, b edge) int {
		return cmp.Or(cmp.Compare(a.Lo, b.Lo), cmp.Compare(a.Hi, b.Hi), cmp.Compare(a.To, b.To))
	})
	s.Edges = mergeAlike(m, s.Edges, func(a, b edge) bool { return a.ByteRange == b.ByteRange },
		func(e *edge) *int32 { return &e.To })
	slices.SortFunc(s.Calls, func(a, b callEdge) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.Back, b.Back))
	})
	s.Calls = mergeAlike(m, s.Calls, func(a, b callEdge) bool { return a.Start == b.Start },
		func(c *callEdge) *int32 { return &c.Back })
	m.todo = append(m.todo, s.Eps...)
	for _, e := range s.Edges {
		m.todo = append(m.todo, e.To)
	}
	for _, c := range s.Calls {
		m.todo = append(m.todo, c.Back)
	}
	if s.Loop != nil {
		m.todo = append(m.todo, s.Loop.Next)
	}
}

// absorb copies successors without a label and with a single incoming edge into s, and drops
// duplicate edges.
func (m *merger) absorb(at int32, s *pstate) {
	var kept []int32
	for i := 0; i < len(s.Eps); i++ { // take appends to s.eps
		q := s.Eps[i]
		if q == at || m.met[q] == at+1 {
			m.into[q]--
			continue
		}
		m.met[q] = at + 1
		if t := &m.States[q]; m.into[q] == 1 && t.Loop == nil {
			m.take(s, t)
		} else {
			kept = append(kept, q)
		}
	}
	s.Eps = kept
}

// take moves all edges of t to s.
func (m *merger) take(s, t *pstate) {
	s.Edges = append(s.Edges, t.Edges...)
	s.Eps = append(s.Eps, t.Eps...)
	s.Calls = append(s.Calls, t.Calls...)
	s.Final = s.Final || t.Final
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
				m.take(&m.States[a], &m.States[b])
				m.into[b] = 0
				continue
			}
		}
		out = append(out, w)
	}
	clear(ways[len(out):])
	return out
}
