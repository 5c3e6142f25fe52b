package grammar

import (
	"math"
	"slices"
)

// measure computes for every state the number of bytes of the shortest path to the end of its rule:
// shortest paths in which a call costs the shortest text of its rule (Knuth's generalization of
// Dijkstra's algorithm to grammars).
func (b *builder) measure() {
	n := len(b.states)
	first := make([]int32, n+1) // index of the edges into each state
	for i := range b.states {
		for _, e := range b.states[i].edges {
			first[e.to]++
		}
		for _, e := range b.states[i].eps {
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
	for i := range b.states {
		s := &b.states[i]
		s.dist = math.Inf(1)
		from := int32(i)
		for _, e := range s.edges {
			first[e.to]--
			into[first[e.to]] = reverse{from, 1}
		}
		for _, e := range s.eps {
			first[e]--
			into[first[e]] = reverse{from, 0}
		}
		for _, c := range s.calls {
			w := waiter{from, c.start, c.back, 1}
			waiting[c.start], waiting[c.back] = append(waiting[c.start], w), append(waiting[c.back], w)
		}
		if l := s.loop; l != nil {
			w := waiter{from, l.body, l.next, float64(l.least)}
			waiting[l.next] = append(waiting[l.next], w)
			if l.least > 0 {
				waiting[l.body] = append(waiting[l.body], w)
			}
		}
	}
	b.distances(func(s int32) []reverse { return into[first[s]:first[s+1]] }, waiting)
}

// distances computes the distances, starting from the final states.
func (b *builder) distances(into func(int32) []reverse, waiting map[int32][]waiter) {
	var q distances
	best, done := make([]float64, len(b.states)), make([]bool, len(b.states))
	push := func(state int32, bytes float64) {
		if bytes < best[state] {
			best[state] = bytes
			q.push(distance{state, bytes})
		}
	}
	for i := range b.states {
		if best[i] = math.Inf(1); b.states[i].final {
			push(int32(i), 0)
		}
	}
	for len(q) > 0 {
		d := q.pop()
		if done[d.state] {
			continue
		}
		done[d.state] = true
		b.states[d.state].dist = d.bytes
		for _, r := range into(d.state) {
			push(r.from, d.bytes+float64(r.bytes))
		}
		for _, w := range waiting[d.state] {
			push(w.from, w.cost(b.states))
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
		return s[w.back].dist
	}
	return w.times*s[w.rule].dist + s[w.back].dist
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
func (b *builder) prune() {
	dead := func(s int32) bool { return math.IsInf(b.states[s].dist, 1) }
	for i := range b.states {
		s := &b.states[i]
		s.edges = slices.DeleteFunc(s.edges, func(e edge) bool { return dead(e.to) })
		s.eps = slices.DeleteFunc(s.eps, dead)
		s.calls = slices.DeleteFunc(s.calls, func(c callEdge) bool { return dead(c.start) || dead(c.back) })
	}
}

// leftRecursion returns an error for rules that enter themselves before reading a byte: their
// stacks would grow without limit.
func (b *builder) leftRecursion() error {
	type visit struct{ state, next int32 }
	const onTheWay, done = 1, 2
	mark := make([]uint8, len(b.states))
	var way []visit
	for i := range b.rules {
		start := b.rules[i].start
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
				e := refuse(b.rules[i].path, "the rule begins with itself, so that no answer could end")
				e.owner = b.rules[i].of
				return e
			}
		}
	}
	return nil
}

// unread returns the n-th state that is reached from a state without reading a byte, whether it is
// the start of a rule or loop body, and whether there is an n-th one. It returns -1 if a byte is
// read before it.
func (b *builder) unread(state, n int32) (to int32, enters, more bool) {
	s := &b.states[state]
	if n < int32(len(s.eps)) {
		return s.eps[n], false, true
	}
	n -= int32(len(s.eps))
	if n < 2*int32(len(s.calls)) {
		c := s.calls[n/2]
		switch {
		case n%2 == 0:
			return c.start, true, true
		case b.states[c.start].dist == 0:
			return c.back, false, true
		}
		return -1, false, true
	}
	n -= 2 * int32(len(s.calls))
	switch l := s.loop; {
	case l == nil || n > 1:
		return -1, false, false
	case n == 0:
		return l.body, true, true
	case l.least == 0 || b.states[l.body].dist == 0:
		return l.next, false, true
	}
	return -1, false, true
}

// emptyRounds is the largest count of a repetition whose body may be empty: a state keeps the
// counts of all rounds that may have been empty.
const emptyRounds = 64

// checkLoops adjusts loops whose body may be empty and returns an error for large counts.
func (b *builder) checkLoops() error {
	for i := range b.states {
		l := b.states[i].loop
		if l == nil || b.states[l.body].dist > 0 {
			continue
		}
		if l.least = 0; l.most > emptyRounds {
			return refuse("", "a repetition whose body may be empty is limited to %d, not %d", emptyRounds, l.most)
		}
	}
	return nil
}

// distance returns the number of bytes of the shortest path to the end of the rule.
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
