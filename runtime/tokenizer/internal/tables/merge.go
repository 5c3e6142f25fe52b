package tables

import (
	"math/bits"
	"math/rand/v2"
	"slices"
)

// noRank is the rank of a pair that does not merge.
const noRank = ^uint32(0)

// MergeTable maps pairs of adjacent symbols to the symbol that they merge into and to a rank. The
// pair with the lowest rank merges first; among equal ranks the left-most. BPE uses the index of
// the merge rule as rank, SPM the position of the joined token's score, best first. A MergeTable is
// read-only after it is built.
type MergeTable struct {
	slots []mergeSlot // open addressing, a power of two; key 0 is free
	used  int
	seed  uint64
}

type mergeSlot struct {
	key    uint64 // (left+1) << 32 | right
	rank   uint32
	joined int32
}

// NewMergeTable returns a table with space for capacity rules. It grows as needed.
func NewMergeTable(capacity int) *MergeTable {
	size := 1024
	for size < 2*capacity {
		size *= 2
	}
	return &MergeTable{slots: make([]mergeSlot, size), seed: rand.Uint64()}
}

func pairKey(left, right int32) uint64 { return uint64(uint32(left)+1)<<32 | uint64(uint32(right)) }

// home returns the first slot to probe for key. The seed prevents a hostile vocabulary from
// choosing colliding keys.
func (m *MergeTable) home(key uint64) uint64 {
	hi, lo := bits.Mul64(key^m.seed, 0x9E3779B97F4A7C15)
	return (hi ^ lo) & uint64(len(m.slots)-1)
}

// Add stores a rule, unless the pair has one already.
func (m *MergeTable) Add(left, right int32, rank uint32, joined int32) {
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

// at returns the slot of key, or the free slot where key would be stored.
func (m *MergeTable) at(key uint64) *mergeSlot {
	mask := uint64(len(m.slots) - 1)
	for i := m.home(key); ; i = (i + 1) & mask {
		if s := &m.slots[i]; s.key == key || s.key == 0 {
			return s
		}
	}
}

// look returns the rank of a pair and the symbol that it merges into, or noRank and -1.
func (m *MergeTable) look(left, right int32) (rank uint32, joined int32) {
	if s := m.at(pairKey(left, right)); s.key != 0 {
		return s.rank, s.joined
	}
	return noRank, -1
}

// shortWord is the longest word, in symbols, for which a linear search of all pairs is faster than
// a heap (BenchmarkMergeWord). Longer words are rare.
const shortWord = 48

// Merge joins the symbols of one word until no pair merges and returns the remaining symbols, in
// the same memory.
func (m *MergeTable) Merge(w *Work, word []int32) []int32 {
	if len(word) <= shortWord {
		return m.mergeShort(word)
	}
	return m.mergeLong(w, word)
}

// mergeShort searches all ranks for each join. It takes quadratic time but allocates nothing.
func (m *MergeTable) mergeShort(word []int32) []int32 {
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

// mergeLong keeps the candidate pairs in a heap and takes O(n log n) time. Hostile clients send
// words of megabytes, so it uses only 4 bytes per symbol and 8 per candidate: a candidate is
// rank<<32 | position of the left symbol. A candidate whose pair has changed is recognized by its
// rank; if the new pair has the same rank, the candidate is valid for it. If encoding is canceled,
// mergeLong returns the symbols joined so far.
func (m *MergeTable) mergeLong(w *Work, word []int32) []int32 {
	w.heap = slices.Grow(w.heap[:0], 2*len(word)) // each join removes one candidate and adds at most two
	for i := 0; i+1 < len(word) && !w.Poll(1); i++ {
		m.consider(w, word[i], word[i+1], i)
	}
	for i := (len(w.heap) - 2) / heapArity; i >= 0 && len(w.heap) > 1; i-- {
		siftDown(w.heap, i)
	}
	for len(w.heap) > 0 && !w.Poll(1) {
		at := int(uint32(w.heap[0]))
		right := after(word, at)
		if word[at] < 0 || right == len(word) {
			w.popHeap()
			continue
		}
		rank, joined := m.look(word[at], word[right])
		if uint64(rank)<<32|uint64(at) != w.heap[0] {
			w.popHeap()
			continue
		}
		w.popHeap()
		end := after(word, right)
		fuse(word, at, right, end, joined)
		if end < len(word) && m.consider(w, joined, word[end], at) {
			siftUp(w.heap, len(w.heap)-1)
		}
		if at > 0 {
			before := before(word, at)
			if m.consider(w, word[before], joined, before) {
				siftUp(w.heap, len(w.heap)-1)
			}
		}
	}
	return slices.DeleteFunc(word, func(s int32) bool { return s < 0 })
}

// consider appends the pair whose left symbol is at the given position to the heap's slice, and
// reports whether the pair merges. The caller restores the heap order.
func (m *MergeTable) consider(w *Work, left, right int32, at int) bool {
	rank, _ := m.look(left, right)
	if rank == noRank {
		return false
	}
	w.heap = append(w.heap, uint64(rank)<<32|uint64(at))
	return true
}

// fuse replaces the symbols at the positions at and right with joined, which is stored at at and
// extends to end. The second and the last position store the negated number of positions, from
// which the functions after and before find the adjacent symbols.
func fuse(word []int32, at, right, end int, joined int32) {
	word[at] = joined
	for _, i := range [...]int{right, at + 1, end - 1} {
		word[i] = int32(at - end)
	}
}

// after returns the position of the next symbol, or len(word).
func after(word []int32, at int) int {
	if at+1 < len(word) && word[at+1] < 0 {
		return at - int(word[at+1])
	}
	return at + 1
}

// before returns the position of the symbol that ends at position at, which must not be 0.
func before(word []int32, at int) int {
	if word[at-1] < 0 {
		return at + int(word[at-1])
	}
	return at - 1
}

// heapArity is 4: the heap has half the levels of a binary heap, and four children lie in one or
// two cache lines.
const heapArity = 4

func (w *Work) popHeap() {
	last := len(w.heap) - 1
	w.heap[0] = w.heap[last]
	w.heap = w.heap[:last]
	if last > 1 {
		siftDown(w.heap, 0)
	}
}

func siftUp(h []uint64, i int) {
	c := h[i]
	for i > 0 {
		parent := (i - 1) / heapArity
		if h[parent] <= c {
			break
		}
		h[i] = h[parent]
		i = parent
	}
	h[i] = c
}

func siftDown(h []uint64, i int) {
	c := h[i]
	for {
		child := heapArity*i + 1
		if child >= len(h) {
			break
		}
		smallest := child
		for j := child + 1; j < min(child+heapArity, len(h)); j++ {
			if h[j] < h[smallest] {
				smallest = j
			}
		}
		if h[smallest] >= c {
			break
		}
		h[i] = h[smallest]
		i = smallest
	}
	h[i] = c
}
