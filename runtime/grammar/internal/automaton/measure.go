package automaton

import (
	"math"
	"slices"
)

// measure computes for every state the number of bytes of the shortest path to the end of its rule:
// shortest paths in which a call costs the shortest text of its rule (Knuth's generalization of
// Dijkstra's algorithm to grammars).
func (b *Builder) measure() {
	n := len(b.States)
	first := make([]int32, n+1) // index of the edges into each state
	for i := range b.States {
		for _, e := range b.States[i].Edges {
			first[e.To]++
		}
		for _, e := range b.States[i].Eps {
			first[e]++
		}
	}
	sum := int32(0)
	for i := range first {
		sum += first[i]
		first[i] = sum // the end; filling moves it to the start
	}
	into := make([]reverse, sum)
	waiting := map[int32][]waiter{} // states that call the rule starting at the key
	for i := range b.States {
		s := &b.States[i]
		s.Dist = math.Inf(1)
		from := int32(i)
		for _, e := range s.Edges {
			first[e.To]--
			into[first[e.To]] = reverse{from, 1}
		}
		for _, e := range s.Eps {
			first[e]--
			into[first[e]] = reverse{from, 0}
		}
		for _, c := range s.Calls {
			w := waiter{from, c.Start, c.Back, 1}
			waiting[c.Start], waiting[c.Back] = append(waiting[c.Start], w), append(waiting[c.Back], w)
		}
		if l := s.Loop; l != nil {
			w := waiter{from, l.Body, l.Next, float64(l.Least)}
			waiting[l.Next] = append(waiting[l.Next], w)
			if l.Least > 0 {
				waiting[l.Body] = append(waiting[l.Body], w)
			}
		}
	}
	b.distances(func(s int32) []reverse { return into[first[s]:first[s+1]] }, waiting)
}

// distances computes the distances, starting from the final states.
func (b *Builder) distances(into func(int32) []reverse, waiting map[int32][]waiter) {
	var q distances
	best, done := make([]float64, len(b.States)), make([]bool, len(b.States))
	push := func(state int32, bytes float64) {
		if bytes < best[state] {
			best[state] = bytes
			q.push(distance{state, bytes})
		}
	}
	for i := range b.States {
		if best[i] = math.Inf(1); b.States[i].Final {
			push(int32(i), 0)
		}
	}
	for len(q) > 0 {
		d := q.pop()
		if done[d.state] {
			continue
		}
		done[d.state] = true
		b.States[d.state].Dist = d.bytes
		for _, r := range into(d.state) {
			push(r.from, d.bytes+float64(r.bytes))
		}
		for _, w := range waiting[d.state] {
			push(w.from, w.cost(b.States))
		}
	}
}

// reverse is an edge into a state.
type reverse struct {
	from  int32
	bytes int32
}

// waiter is a state that passes through a rule some times and continues after it.
type waiter struct {
	from, rule, back int32
	times            float64
}

func (w waiter) cost(s []pstate) float64 {
	if w.times == 0 {
		return s[w.back].Dist
	}
	return w.times*s[w.rule].Dist + s[w.back].Dist
}

type distance struct {
	state int32
	bytes float64
}

// distances is a binary min-heap. A large program pushes millions of entries.
type distances []distance

func (d *distances) push(x distance) {
	q := append(*d, x)
	i := len(q) - 1
	for ; i > 0 && x.bytes < q[(i-1)/2].bytes; i = (i - 1) / 2 {
		q[i] = q[(i-1)/2]
	}
	q[i], *d = x, q
}

func (d *distances) pop() distance {
	q := *d
	top, x := q[0], q[len(q)-1]
	q = q[:len(q)-1]
	*d = q
	for i := 0; len(q) > 0; {
		next := 2*i + 1
		if next+1 < len(q) && q[next+1].bytes < q[next].bytes {
			next++
		}
		if next >= len(q) || x.bytes <= q[next].bytes {
			q[i] = x
			break
		}
		q[i] = q[next]
		i = next
	}
	return top
}

// prune removes edges that lead nowhere, so that an answer never reaches a dead end.
func (b *Builder) prune() {
	dead := func(s int32) bool { return math.IsInf(b.States[s].Dist, 1) }
	for i := range b.States {
		s := &b.States[i]
		s.Edges = slices.DeleteFunc(s.Edges, func(e edge) bool { return dead(e.To) })
		s.Eps = slices.DeleteFunc(s.Eps, dead)
		s.Calls = slices.DeleteFunc(s.Calls, func(c callEdge) bool { return dead(c.Start) || dead(c.Back) })
	}
}

// leftRecursion returns an error for rules that enter themselves before reading a byte: their
// stacks would grow without limit.
func (b *Builder) leftRecursion() error {
	type visit struct{ state, next int32 }
	const onTheWay, done = 1, 2
	mark := make([]uint8, len(b.States))
	var way []visit
	for i := range b.Rules {
		start := b.Rules[i].Start
		if mark[start] == 0 {
			mark[start] = onTheWay
			way = append(way, visit{state: start})
		}
		for len(way) > 0 {
			v := &way[len(way)-1]
			to, enters, more := b.unread(v.state, v.next)
			v.next++
			switch {
			case !more:
				mark[v.state] = done
				way = way[:len(way)-1]
			case to < 0 || mark[to] == done:
			case mark[to] == 0:
				mark[to] = onTheWay
				way = append(way, visit{state: to})
			case enters:
				e := Refuse(b.Rules[i].Path, "the rule begins with itself, so that no answer could end")
				e.Owner = b.Rules[i].Of
				return e
			}
		}
	}
	return nil
}

// unread returns the n-th state that is reached from a state without reading a byte, whether it is
// the start of a rule or loop body, and whether there is an n-th one. It returns -1 if a byte is
// read before it.
func (b *Builder) unread(state, n int32) (to int32, enters, more bool) {
	s := &b.States[state]
	if n < int32(len(s.Eps)) {
		return s.Eps[n], false, true
	}
	n -= int32(len(s.Eps))
	if n < 2*int32(len(s.Calls)) {
		c := s.Calls[n/2]
		switch {
		case n%2 == 0:
			return c.Start, true, true
		case b.States[c.Start].Dist == 0:
			return c.Back, false, true
		}
		return -1, false, true
	}
	n -= 2 * int32(len(s.Calls))
	switch l := s.Loop; {
	case l == nil || n > 1:
		return -1, false, false
	case n == 0:
		return l.Body, true, true
	case l.Least == 0 || b.States[l.Body].Dist == 0:
		return l.Next, false, true
	}
	return -1, false, true
}

// emptyRounds is the largest count of a repetition whose body may be empty: a state keeps the
// counts of all rounds that may have been empty.
const emptyRounds = 64

// checkLoops adjusts loops whose body may be empty and returns an error for large counts.
func (b *Builder) checkLoops() error {
	for i := range b.States {
		l := b.States[i].Loop
		if l == nil || b.States[l.Body].Dist > 0 {
			continue
		}
		if l.Least = 0; l.Most > emptyRounds {
			return Refuse("", "a repetition whose body may be empty is limited to %d, not %d", emptyRounds, l.Most)
		}
	}
	return nil
}
