package tokenizer

import (
	"math/bits"
	"math/rand/v2"
	"slices"
)

// noRank is the rank of a pair that does not merge.
const noRank = ^uint32(0)

// mergeTable says which pairs of neighbouring symbols join to one, and in which order: the pair of
// lowest rank first, the left-most first among equal ranks. Both BPE (rank: number of the merge
// rule) and SPM (rank: position of the joined token's score, best first) are this one procedure.
// Built once, then only read.
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

// home is the first slot to look at for key. The seed keeps a hostile vocabulary from choosing its
// collisions.
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

// shortWord is the length in symbols up to which looking through all pairs beats a heap. By
// BenchmarkMergeWord on GPT-2's rules it takes two thirds of the time at 8 to 48 symbols; words are
// hardly ever longer.
const shortWord = 48

// merge joins the symbols of one word until no pair is left and returns what remains, in the same
// memory.
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

// mergeLong keeps the candidates in a heap: n log n, for words without spaces of any length. A word
// of megabytes is what hostile clients send, so that it takes 4 bytes a symbol and 8 a candidate: a
// candidate is only rank << 32 | position of the left symbol. One whose pair has changed is known
// by its rank; a pair that has changed to one of equal rank has its turn there all the same. Where
// nobody wants the rest any more it returns what is joined by then.
func (m *mergeTable) mergeLong(sc *scratch, word []int32) []int32 {
	sc.heap = slices.Grow(sc.heap[:0], 2*len(word)) // each join takes one away and adds two at most
	for i := 0; i+1 < len(word) && !sc.poll(1); i++ {
		m.consider(sc, word[i], word[i+1], i)
	}
	for i := (len(sc.heap) - 2) / heapArity; i >= 0 && len(sc.heap) > 1; i-- {
		siftDown(sc.heap, i)
	}
	for len(sc.heap) > 0 && !sc.poll(1) {
		at := int(uint32(sc.heap[0]))
		right := after(word, at)
		if word[at] < 0 || right == len(word) {
			sc.popHeap()
			continue
		}
		rank, joined := m.look(word[at], word[right])
		if uint64(rank)<<32|uint64(at) != sc.heap[0] {
			sc.popHeap()
			continue
		}
		sc.popHeap()
		end := after(word, right)
		fuse(word, at, right, end, joined)
		if end < len(word) && m.consider(sc, joined, word[end], at) {
			siftUp(sc.heap, len(sc.heap)-1)
		}
		if at > 0 {
			before := before(word, at)
			if m.consider(sc, word[before], joined, before) {
				siftUp(sc.heap, len(sc.heap)-1)
			}
		}
	}
	return slices.DeleteFunc(word, func(s int32) bool { return s < 0 })
}

// consider puts a pair, the left symbol of which is at the given position, at the heap's end if it
// merges.
func (m *mergeTable) consider(sc *scratch, left, right int32, at int) bool {
	rank, _ := m.look(left, right)
	if rank == noRank {
		return false
	}
	sc.heap = append(sc.heap, uint64(rank)<<32|uint64(at))
	return true
}

// fuse puts the symbol that two were joined to, those at the places at and right, at the first of
// their places. Of the others none holds a symbol; the second and the last hold the number of
// places, negative, by which after and before find the neighbours.
func fuse(word []int32, at, right, end int, joined int32) {
	word[at] = joined
	for _, i := range [...]int{right, at + 1, end - 1} {
		word[i] = int32(at - end)
	}
}

// after is where the next symbol is, or len(word).
func after(word []int32, at int) int {
	if at+1 < len(word) && word[at+1] < 0 {
		return at - int(word[at+1])
	}
	return at + 1
}

// before is where the symbol is that ends at the given place, which is not the first.
func before(word []int32, at int) int {
	if word[at-1] < 0 {
		return at + int(word[at-1])
	}
	return at - 1
}

// heapArity is four: half the levels of a binary heap, and the four children lie in one cache line
// or two.
const heapArity = 4

func (sc *scratch) popHeap() {
	last := len(sc.heap) - 1
	sc.heap[0] = sc.heap[last]
	sc.heap = sc.heap[:last]
	if last > 1 {
		siftDown(sc.heap, 0)
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
		least := child
		for j := child + 1; j < min(child+heapArity, len(h)); j++ {
			if h[j] < h[least] {
				least = j
			}
		}
		if h[least] >= c {
			break
		}
		h[i] = h[least]
		i = least
	}
	h[i] = c
}
