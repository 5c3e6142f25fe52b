package grammar

import "slices"

// mostShared is the length of the words together up to which endings that are alike are one: the
// sharing takes some memory of its own.
const mostShared = 1 << 19

// writeWords makes the automaton of the words, level by level, so that what masks look at lies
// together.
func (b *builder) writeWords(w []string, from, to int32) {
	b.noteWords(w)
	w = slices.Clone(w)
	slices.Sort(w)
	w = slices.Compact(w)
	size := 0
	for _, x := range w {
		size += len(x)
	}
	b.meter.work(16*len(w) + size)
	if len(w) >= leastShared && size <= mostShared {
		b.meter.scratch(24*size, func() { b.writeShared(w, from, to) })
		return
	}
	type part struct {
		words []string // that begin alike
		state int32    // behind what they have in common, so many bytes
		depth int
	}
	level := []part{{words: w, state: from}}
	for len(level) > 0 {
		var below []part
		for _, p := range level {
			w := p.words
			if len(w) > 0 && len(w[0]) == p.depth {
				b.eps(p.state, to)
				w = w[1:]
			}
			for i := 0; i < len(w); {
				j, c := i, w[i][p.depth]
				for j < len(w) && w[j][p.depth] == c {
					j++
				}
				next := to
				if j-i > 1 || len(w[i]) > p.depth+1 {
					next = b.state()
					below = append(below, part{w[i:j], next, p.depth + 1})
				}
				b.edge(p.state, next, byteRange{c, c})
				i = j
			}
		}
		level = below
	}
}

// leastShared is how many words share their endings. Few words are a trie, whose states
// alternatives that begin alike can be merged with (mergePrefixes).
const leastShared = 64

// wordNode is a state of the least automaton of some words: what may follow, and whether one of
// them ends here.
type wordNode struct {
	from, to int32 // its ways, in words.ways
	final    bool
}

// wordWay is a way out of a wordNode.
type wordWay struct {
	b  byte
	to int32
}

// wordSet is the least automaton of sorted words, made from their ends: nodes that say the same are
// one (Daciuk et al., Incremental construction of minimal acyclic finite-state automata, 2000).
type wordSet struct {
	nodes []wordNode
	ways  []wordWay
	table []int32 // of nodes by what they say: 1 + the number of one, 0: none
	free  []wordWay
}

// node finds or makes the node of these ways.
func (s *wordSet) node(ways []wordWay, final bool) int32 {
	if len(s.nodes)*2 >= len(s.table) {
		s.table = make([]int32, max(1024, 4*len(s.nodes)))
		for i := range s.nodes {
			n := &s.nodes[i]
			s.table[s.place(s.ways[n.from:n.to], n.final)] = int32(i) + 1
		}
	}
	at := s.place(ways, final)
	if s.table[at] == 0 {
		from := int32(len(s.ways))
		s.ways = append(s.ways, ways...)
		s.nodes = append(s.nodes, wordNode{from, int32(len(s.ways)), final})
		s.table[at] = int32(len(s.nodes))
	}
	return s.table[at] - 1
}

// place is where such a node stands in the table, or would.
func (s *wordSet) place(ways []wordWay, final bool) int {
	h := uint64(len(ways))
	if final {
		h = ^h
	}
	for _, w := range ways {
		h = mixed(h ^ uint64(w.b)<<32 ^ uint64(w.to))
	}
	for at := int(h % uint64(len(s.table))); ; at = (at + 1) % len(s.table) {
		i := s.table[at] - 1
		if i < 0 {
			return at
		}
		if n := &s.nodes[i]; n.final == final && slices.Equal(s.ways[n.from:n.to], ways) {
			return at
		}
	}
}

// add is the node behind the first depth bytes of the words, which they share.
func (s *wordSet) add(w []string, depth int) int32 {
	shared := 0 // of the first and of the last, and so of all
	for a, b := w[0], w[len(w)-1]; depth+shared < min(len(a), len(b)) && a[depth+shared] == b[depth+shared]; {
		shared++
	}
	first, fork := w[0], depth+shared
	from := len(s.free)
	final := len(first) == fork
	if final {
		w = w[1:]
	}
	for i := 0; i < len(w); {
		j, c := i, w[i][fork]
		for j < len(w) && w[j][fork] == c {
			j++
		}
		to := s.add(w[i:j], fork+1)
		s.free = append(s.free, wordWay{c, to})
		i = j
	}
	at := s.node(s.free[from:], final)
	s.free = s.free[:from]
	for i := fork - 1; i >= depth; i-- {
		at = s.node([]wordWay{{first[i], at}}, false)
	}
	return at
}

// writeShared writes the words as their least automaton.
func (b *builder) writeShared(w []string, from, to int32) {
	var s wordSet
	root := s.add(w, 0)
	fork := root // behind what all words begin with
	for n := s.nodes[fork]; n.to-n.from == 1 && !n.final; n = s.nodes[fork] {
		fork = s.ways[n.from].to
	}
	at := make([]int32, len(s.nodes)) // 1 + the state of each
	at[root] = from + 1
	level := []int32{root}
	for i := 0; i < len(level); i++ {
		n := &s.nodes[level[i]]
		here := at[level[i]] - 1
		if n.final {
			b.eps(here, to)
		}
		for _, way := range s.ways[n.from:n.to] {
			if next := &s.nodes[way.to]; next.final && next.from == next.to {
				at[way.to] = to + 1
			} else if at[way.to] == 0 {
				at[way.to] = b.state() + 1
				level = append(level, way.to)
			}
			b.edge(here, at[way.to]-1, byteRange{way.b, way.b})
		}
	}
	if len(b.heavy) < mostHeavy && at[fork] != 0 {
		b.heavy = append(b.heavy, at[fork]-1)
	}
}

// mixed spreads the bits of a number (splitmix64).
func mixed(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
