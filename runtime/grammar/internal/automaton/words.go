package automaton

import "slices"

// maxShared is the largest total length of words whose common suffixes are shared, because sharing
// needs additional memory.
const maxShared = 1 << 19

// writeWords writes the automaton of the words level by level, so that the states that masks visit
// together are adjacent.
func (b *Builder) writeWords(w []string, from, to int32) {
	b.noteWords(w)
	w = slices.Clone(w)
	slices.Sort(w)
	w = slices.Compact(w)
	size := 0
	for _, x := range w {
		size += len(x)
	}
	b.Meter.Work(16*len(w) + size)
	if len(w) >= LeastShared && size <= maxShared {
		b.Meter.scratch(24*size, func() { b.writeShared(w, from, to) })
		return
	}
	type part struct {
		words []string // words with a common prefix
		state int32    // state after the prefix of depth bytes
		depth int
	}
	level := []part{{words: w, state: from}}
	for len(level) > 0 {
		var below []part
		for _, p := range level {
			w := p.words
			if len(w) > 0 && len(w[0]) == p.depth {
				b.Eps(p.state, to)
				w = w[1:]
			}
			for i := 0; i < len(w); {
				j, c := i, w[i][p.depth]
				for j < len(w) && w[j][p.depth] == c {
					j++
				}
				next := to
				if j-i > 1 || len(w[i]) > p.depth+1 {
					next = b.State()
					below = append(below, part{w[i:j], next, p.depth + 1})
				}
				b.Edge(p.state, next, ByteRange{c, c})
				i = j
			}
		}
		level = below
	}
}

// LeastShared is the number of words from which on suffixes are shared. Fewer words are written as
// a trie, whose states can be merged with those of other alternatives (mergePrefixes).
const LeastShared = 64

// wordNode is a state of the minimal automaton of some words.
type wordNode struct {
	from, to int32 // its edges in wordSet.ways
	final    bool
}

// wordWay is an edge out of a wordNode.
type wordWay struct {
	b  byte
	to int32
}

// wordSet is the minimal automaton of sorted words, built from their ends: equal nodes are shared
// (Daciuk et al., Incremental construction of minimal acyclic finite-state automata, 2000).
type wordSet struct {
	nodes []wordNode
	ways  []wordWay
	table []int32 // hash table of node numbers plus 1; 0 is free
	free  []wordWay
}

// node returns the node with the given edges.
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

// place returns the slot of a node in the table, or the free slot where it would be stored.
func (s *wordSet) place(ways []wordWay, final bool) int {
	h := uint64(len(ways))
	if final {
		h = ^h
	}
	for _, w := range ways {
		h = Mixed(h ^ uint64(w.b)<<32 ^ uint64(w.to))
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

// add returns the node after the first depth bytes of the words, which all words share.
func (s *wordSet) add(w []string, depth int) int32 {
	shared := 0 // further bytes that the first and the last word share, and therefore all
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

// writeShared writes the words as their minimal automaton.
func (b *Builder) writeShared(w []string, from, to int32) {
	var s wordSet
	root := s.add(w, 0)
	fork := root // the node after the common prefix of all words
	for n := s.nodes[fork]; n.to-n.from == 1 && !n.final; n = s.nodes[fork] {
		fork = s.ways[n.from].to
	}
	at := make([]int32, len(s.nodes)) // state of each node plus 1
	at[root] = from + 1
	level := []int32{root}
	for i := 0; i < len(level); i++ {
		n := &s.nodes[level[i]]
		here := at[level[i]] - 1
		if n.final {
			b.Eps(here, to)
		}
		for _, way := range s.ways[n.from:n.to] {
			if next := &s.nodes[way.to]; next.final && next.from == next.to {
				at[way.to] = to + 1
			} else if at[way.to] == 0 {
				at[way.to] = b.State() + 1
				level = append(level, way.to)
			}
			b.Edge(here, at[way.to]-1, ByteRange{way.b, way.b})
		}
	}
	if len(b.Heavy) < maxHeavy && at[fork] != 0 {
		b.Heavy = append(b.Heavy, at[fork]-1)
	}
}

// maxHeavy is the largest number of words states whose tokens are followed in advance.
const maxHeavy = 256
