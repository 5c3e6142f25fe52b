package tokenizer

import (
	"math/bits"
	"math/rand/v2"
	"slices"
)

// noRank is the rank of a pair that does not merge.
const noRank = ^uint32(0)

// mergeTable says which pairs of neighbouring symbols join to one, and in which order: the pair of lowest rank first, the
// left-most first among equal ranks. Both BPE (rank: number of the merge rule) and SPM (rank: position of the joined
// token's score, best first) are this one procedure. Built once, then only read.
type mergeTable struct {
	slots []mergeSlot // open addressing, a power of two; key 0 is free
	used  int
	seed  uint64
}

type mergeSlot struct {
	key    uint64 // (left+1) << 32 | right
	rank   uint32
	joined int32
}

func newMergeTable(capacity int) *mergeTable {
	size := 1024
	for size < 2*capacity {
		size *= 2
	}
	return &mergeTable{slots: make([]mergeSlot, size), seed: rand.Uint64()}
}

func pairKey(left, right int32) uint64 { return uint64(uint32(left)+1)<<32 | uint64(uint32(right)) }

// home is the first slot to look at for key. The seed keeps a hostile vocabulary from choosing its collisions.
func (m *mergeTable) home(key uint64) uint64 {
	hi, lo := bits.Mul64(key^m.seed, 0x9E3779B97F4A7C15)
	return (hi ^ lo) & uint64(len(m.slots)-1)
}

// add enters a rule; a pair that has one keeps it.
func (m *mergeTable) add(left, right int32, rank uint32, joined int32) {
	if 2*m.used >= len(m.slots) {
		old := m.slots
		m.slots = make([]mergeSlot, 2*len(old))
		for _, s := range old {
			if s.key != 0 {
				*m.at(s.key) = s
			}
		}
	}
	key := pairKey(left, right)
	if s := m.at(key); s.key == 0 {
		*s = mergeSlot{key, rank, joined}
		m.used++
	}
}

// at returns the slot of key, or the free one where it would go.
func (m *mergeTable) at(key uint64) *mergeSlot {
	mask := uint64(len(m.slots) - 1)
	for i := m.home(key); ; i = (i + 1) & mask {
		if s := &m.slots[i]; s.key == key || s.key == 0 {
			return s
		}
	}
}

// look returns the rank and the joined symbol of a pair, or noRank.
func (m *mergeTable) look(left, right int32) (rank uint32, joined int32) {
	if s := m.at(pairKey(left, right)); s.key != 0 {
		return s.rank, s.joined
	}
	return noRank, -1
}

// shortWord is the length in symbols up to which looking through all pairs beats a heap. By BenchmarkMergeWord on GPT-2's rules
// it takes two thirds of the time at 8 to 48 symbols; words are hardly ever longer.
const shortWord = 48

// merge joins the symbols of one word until no pair is left and returns what remains, in the same memory.
func (m *mergeTable) merge(sc *scratch, word []int32) []int32 {
	if len(word) <= shortWord {
		return m.mergeShort(word)
	}
	return m.mergeLong(sc, word)
}

// mergeShort looks through all ranks for each join: quadratic, but without any memory traffic.
func (m *mergeTable) mergeShort(word []int32) []int32 {
	var ranks [shortWord]uint32 // ranks[i] is the rank of the pair (i, i+1)
	var joins [shortWord]int32
	for i := 0; i+1 < len(word); i++ {
		ranks[i], joins[i] = m.look(word[i], word[i+1])
	}
	for n := len(word); n > 1; n-- {
		best, rank := -1, noRank
		for i, r := range ranks[:n-1] {
			if r < rank {
				best, rank = i, r
			}
		}
		if best < 0 {
			break
		}
		word[best] = joins[best]
		copy(word[best+1:], word[best+2:])
		word = word[:n-1]
		copy(ranks[best:n-2], ranks[best+1:n-1])
		copy(joins[best:n-2], joins[best+1:n-1])
		if best > 0 {
			ranks[best-1], joins[best-1] = m.look(word[best-1], word[best])
		}
		if best+1 < len(word) {
			ranks[best], joins[best] = m.look(word[best], word[best+1])
		}
	}
	return word
}

// scratch is the memory of one Encode call, reused between calls.
type scratch struct {
	word []int32
	// next and prev link the positions of a long word that are still the start of a symbol; -1 ends.
	next, prev []int32
	heap       []candidate
}

// candidate is a pair that may be joined. It is stale when the symbols at its place have changed since.
type candidate struct {
	key         uint64 // rank << 32 | position of the left symbol
	left, right int32  // the symbols seen
	joined      int32
}

// mergeLong keeps the candidates in a heap over linked symbols: n log n, for words without spaces of any length.
func (m *mergeTable) mergeLong(sc *scratch, word []int32) []int32 {
	n := len(word)
	sc.next, sc.prev, sc.heap = sized(sc.next, n), sized(sc.prev, n), slices.Grow(sc.heap[:0], n)
	for i := range n {
		sc.next[i], sc.prev[i] = int32(i+1), int32(i-1)
		if i+1 < n {
			if rank, joined := m.look(word[i], word[i+1]); rank != noRank {
				sc.heap = append(sc.heap, candidate{uint64(rank)<<32 | uint64(i), word[i], word[i+1], joined})
			}
		}
	}
	sc.next[n-1] = -1
	for i := (len(sc.heap) - 2) / heapArity; i >= 0 && len(sc.heap) > 1; i-- {
		siftDown(sc.heap, i)
	}
	for len(sc.heap) > 0 {
		c := sc.heap[0]
		at := int32(uint32(c.key))
		right := sc.next[at]
		if word[at] != c.left || right < 0 || word[right] != c.right {
			sc.popHeap()
			continue
		}
		word[at], word[right] = c.joined, -1
		after, before := sc.next[right], sc.prev[at]
		sc.next[at] = after
		sc.popHeap()
		if after >= 0 {
			sc.prev[after] = at
			m.consider(sc, word, at, after)
		}
		if before >= 0 {
			m.consider(sc, word, before, at)
		}
	}
	out := word[:0]
	for i := int32(0); i >= 0; i = sc.next[i] {
		out = append(out, word[i])
	}
	return out
}

// consider puts the pair at positions (left, right) on the heap if it merges.
func (m *mergeTable) consider(sc *scratch, word []int32, left, right int32) {
	if rank, joined := m.look(word[left], word[right]); rank != noRank {
		sc.heap = append(sc.heap, candidate{uint64(rank)<<32 | uint64(left), word[left], word[right], joined})
		siftUp(sc.heap, len(sc.heap)-1)
	}
}

// heapArity is four: half the levels of a binary heap, and the four children lie in two cache lines.
const heapArity = 4

func (sc *scratch) popHeap() {
	last := len(sc.heap) - 1
	sc.heap[0] = sc.heap[last]
	sc.heap = sc.heap[:last]
	if last > 1 {
		siftDown(sc.heap, 0)
	}
}

func siftUp(h []candidate, i int) {
	c := h[i]
	for i > 0 {
		parent := (i - 1) / heapArity
		if h[parent].key <= c.key {
			break
		}
		h[i] = h[parent]
		i = parent
	}
	h[i] = c
}

func siftDown(h []candidate, i int) {
	c := h[i]
	for {
		child := heapArity*i + 1
		if child >= len(h) {
			break
		}
		least := child
		for j := child + 1; j < min(child+heapArity, len(h)); j++ {
			if h[j].key < h[least].key {
				least = j
			}
		}
		if h[least].key >= c.key {
			break
		}
		h[i] = h[least]
		i = least
	}
	h[i] = c
}

// sized returns a slice of n elements with undefined content, in the memory of s if that suffices.
func sized(s []int32, n int) []int32 {
	if cap(s) < n {
		return make([]int32, n+n/4)[:n]
	}
	return s[:n]
}
