package synthetic

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
)

// A use is the part of a limit that one byte read by a PU consumes.
type use struct {
	limit int
	share float64
}

// A traffic is a set of PUs that read from memory at the same time.
type traffic struct {
	uses   [][]use   // of each PU
	own    []float64 // B/s that each PU reads at most, regardless of the others
	limits []limit
	left   []float64 // of each limit, during rates
	weight []float64 // shares of the PUs that are not settled yet
	full   []bool
}

// place sorts PUs by their location, so that their numbers have no effect.
func (m *machine) place(pus []int) []int {
	return slices.SortedFunc(slices.Values(pus), func(a, b int) int {
		x, y := m.pus[a], m.pus[b]
		return cmp.Or(cmp.Compare(x.thread, y.thread), cmp.Compare(x.core, y.core))
	})
}

// traffic returns what each PU needs to read interleaved from all nodes that nodesOf returns.
func (m *machine) traffic(pus []int, nodesOf func(pu int) []int) *traffic {
	t := &traffic{uses: make([][]use, len(pus)), own: make([]float64, len(pus))}
	atWork := make([]int, len(m.cores))
	for _, p := range pus {
		atWork[m.pus[p].core]++
	}
	type name struct {
		kind string
		a, b int
	}
	index := map[name]int{}
	for i, p := range pus {
		add := func(l limit, share float64, kind string, a, b int) {
			key := name{kind, a, b}
			at, ok := index[key]
			if !ok {
				at = len(t.limits)
				index[key] = at
				t.limits = append(t.limits, l)
			}
			t.uses[i] = append(t.uses[i], use{at, share})
		}
		id := m.pus[p].core
		c := m.cores[id]
		home := m.socketOf[c.node]
		nodes := nodesOf(p)
		part, wait := 1/float64(len(nodes)), 0.0
		for _, n := range nodes {
			wait += part / m.near[c.node][n]
			add(m.nodes[n], part, "node", n, n)
			switch from := m.socketOf[n]; {
			case from != home:
				add(limit{rate: m.outer}, part, "sockets", from, home)
			case n != c.node:
				add(limit{rate: m.inner}, part, "nodes", n, c.node)
			}
		}
		if c.cluster >= 0 {
			add(m.clusters[c.cluster], 1, "cluster", c.cluster, c.cluster)
		}
		t.own[i] = c.alone / wait
		if atWork[id] > 1 {
			add(limit{rate: c.alone}, wait, "core", id, id)
		}
	}
	t.left = make([]float64, len(t.limits))
	t.weight = make([]float64, len(t.limits))
	t.full = make([]bool, len(t.limits))
	return t
}

// rates shares the limits among the PUs of a mask, each of which requests bound B/s. All get the
// same until a limit is full; its PUs then stay at their rate, and the others get more.
func (t *traffic) rates(active uint64, bound []float64) []float64 {
	clear(t.weight)
	for rest := active; rest != 0; rest &= rest - 1 {
		for _, u := range t.uses[bits.TrailingZeros64(rest)] {
			t.weight[u.limit] += u.share
		}
	}
	for j, l := range t.limits {
		t.left[j] = l.at(t.weight[j])
	}
	rates := make([]float64, len(t.uses))
	for open := active; open != 0; {
		level := math.Inf(1)
		for rest := open; rest != 0; rest &= rest - 1 {
			level = min(level, bound[bits.TrailingZeros64(rest)])
		}
		for j, w := range t.weight {
			if w > tiny {
				level = min(level, t.left[j]/w)
			}
		}
		for j, w := range t.weight {
			t.full[j] = w > tiny && t.left[j]/w <= level*(1+tiny)
		}
		for rest := open; rest != 0; rest &= rest - 1 {
			i := bits.TrailingZeros64(rest)
			if bound[i] > level*(1+tiny) && !t.blocked(i) {
				continue
			}
			open &^= 1 << i
			rates[i] = level
			for _, u := range t.uses[i] {
				t.left[u.limit] -= level * u.share
				t.weight[u.limit] -= u.share
			}
		}
	}
	return rates
}

func (t *traffic) blocked(i int) bool {
	for _, u := range t.uses[i] {
		if t.full[u.limit] {
			return true
		}
	}
	return false
}

// bandwidth returns what PUs read together when they do nothing else.
func (m *machine) bandwidth(pus []int, nodesOf func(pu int) []int) float64 {
	t := m.traffic(m.place(pus), nodesOf)
	sum := 0.0
	for _, r := range t.rates(mask(len(pus)), t.own) {
		sum += r
	}
	return sum
}

func mask(n int) uint64 { return math.MaxUint64 >> (64 - n) }

// speeds returns the float32 FLOP/s of each PU without its sibling.
func (m *machine) speeds(pus []int) []float64 {
	atWork := map[int]bool{}
	for _, p := range pus {
		atWork[m.pus[p].core] = true
	}
	turbo := 1 - m.droop*float64(len(atWork)-1)/float64(max(1, len(m.cores)-1))
	speeds := make([]float64, len(pus))
	for i, p := range pus {
		speeds[i] = m.cores[m.pus[p].core].peak * turbo
	}
	return speeds
}

// peak returns the float32 FLOP/s of PUs on registers.
func (m *machine) peak(pus []int) float64 {
	sum := 0.0
	pus = m.place(pus)
	seen := make([]bool, len(m.cores))
	for i, speed := range m.speeds(pus) {
		c := m.pus[pus[i]].core
		if seen[c] {
			speed *= siblingGain
		}
		seen[c] = true
		sum += speed
	}
	return sum
}

// barrier returns the time of a barrier of PUs.
func (m *machine) barrier(pus []int) float64 {
	if len(pus) < 2 {
		return 0
	}
	factor := 1.0
	for _, p := range pus {
		if m.node(p) != m.node(pus[0]) {
			factor = max(factor, m.overNode)
		}
		if m.socket(p) != m.socket(pus[0]) {
			factor = max(factor, m.overSock)
		}
	}
	return m.pair * factor * (1 + m.step*(math.Log2(float64(len(pus)))-1))
}

// allReduce returns the time in which PUs sum a matrix of each rank and every rank gets the sum:
// all PUs read a part of each matrix, write their part of the sum, run a barrier, and read it all.
func (m *machine) allReduce(pus []int, ranks int, bytes float64) float64 {
	if ranks < 2 {
		return 0
	}
	pus = m.place(pus)
	rate := 0.0
	seen := make([]bool, len(m.cores))
	for _, p := range pus {
		if c := m.pus[p].core; !seen[c] {
			seen[c] = true
			rate += m.copies * m.cores[c].alone
		}
	}
	all := float64(ranks) * bytes
	perByte := 1 / rate
	if cache := float64(len(m.caches()) * m.l3); all > cache {
		spilled := 1 - cache/all
		perByte = (1-spilled)/rate + spilled/min(rate, m.bandwidth(pus, m.local))
	}
	return 2*m.barrier(pus) + max((2*all+bytes)*perByte, m.crossing(pus, 2*all))
}

// crossing returns the time that bytes take over the busiest link when all nodes read from all
// nodes.
func (m *machine) crossing(pus []int, bytes float64) float64 {
	nodes := make([]float64, len(m.nodes))
	sockets := make([]float64, len(m.nodes))
	for _, p := range pus {
		nodes[m.node(p)] += 1 / float64(len(pus))
		sockets[m.socket(p)] += 1 / float64(len(pus))
	}
	longest := 0.0
	for i := range nodes {
		for j := range i {
			longest = max(longest, bytes*sockets[i]*sockets[j]/m.outer)
			if m.socketOf[i] == m.socketOf[j] {
				longest = max(longest, bytes*nodes[i]*nodes[j]/m.inner)
			}
		}
	}
	return longest
}
