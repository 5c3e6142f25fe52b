package topotree

import (
	"encoding/binary"
	"iter"
	"math/bits"
)

// MaxPUs is the limit of PU indexes in all readers. Linux supports 8192. The limit bounds the size
// of a set to 2 KiB.
const MaxPUs = 16384

// CPUSet is a set of PU indexes in [0, MaxPUs). The zero value is the empty set. A CPUSet is
// immutable: operations return new sets, so sets may be shared.
type CPUSet struct {
	words []uint64 // without trailing zero words, so that equal sets have equal words
}

// NewCPUSet returns the set of the given PU indexes, ignoring those outside [0, MaxPUs).
func NewCPUSet(cpus ...int) CPUSet {
	top := -1
	for _, c := range cpus {
		if c < MaxPUs {
			top = max(top, c)
		}
	}
	words := make([]uint64, top/64+1)
	if top < 0 {
		return CPUSet{}
	}
	for _, c := range cpus {
		if c >= 0 && c < MaxPUs {
			words[c/64] |= 1 << (c % 64)
		}
	}
	return CPUSet{words}
}

// CPURange returns {from, ..., to}, limited to [0, MaxPUs). It is empty if to < from.
func CPURange(from, to int) CPUSet {
	from, to = max(from, 0), min(to, MaxPUs-1)
	if to < from {
		return CPUSet{}
	}
	words := make([]uint64, to/64+1)
	for w := from / 64; w <= to/64; w++ {
		words[w] = ^uint64(0)
	}
	words[from/64] &^= 1<<(from%64) - 1
	if r := to%64 + 1; r < 64 {
		words[to/64] &= 1<<r - 1
	}
	return CPUSet{words}
}

// CPUSetFromWords returns the set of PU c for each bit c%64 of words[c/64]. The set keeps words, so
// the caller must not change them afterwards. No bit may exceed MaxPUs.
func CPUSetFromWords(words []uint64) CPUSet {
	for len(words) > 0 && words[len(words)-1] == 0 {
		words = words[:len(words)-1]
	}
	return CPUSet{words}
}

// Count returns the number of PUs in the set.
func (s CPUSet) Count() int {
	n := 0
	for _, w := range s.words {
		n += bits.OnesCount64(w)
	}
	return n
}

// IsEmpty reports whether the set is empty.
func (s CPUSet) IsEmpty() bool { return len(s.words) == 0 }

// Contains reports whether cpu is in the set.
func (s CPUSet) Contains(cpu int) bool {
	return cpu >= 0 && cpu/64 < len(s.words) && s.words[cpu/64]>>(cpu%64)&1 == 1
}

// First returns the lowest PU index, -1 if the set is empty.
func (s CPUSet) First() int {
	for i, w := range s.words {
		if w != 0 {
			return i*64 + bits.TrailingZeros64(w)
		}
	}
	return -1
}

// Last returns the highest PU index, -1 if the set is empty.
func (s CPUSet) Last() int {
	if len(s.words) == 0 {
		return -1
	}
	top := len(s.words) - 1
	return top*64 + 63 - bits.LeadingZeros64(s.words[top])
}

// Equal reports whether the sets are equal.
func (s CPUSet) Equal(o CPUSet) bool {
	if len(s.words) != len(o.words) {
		return false
	}
	for i, w := range s.words {
		if w != o.words[i] {
			return false
		}
	}
	return true
}

// In reports whether every PU of s is in o. The empty set is in every set.
func (s CPUSet) In(o CPUSet) bool {
	if len(s.words) > len(o.words) {
		return false
	}
	for i, w := range s.words {
		if w&^o.words[i] != 0 {
			return false
		}
	}
	return true
}

// Intersects reports whether the sets share a PU.
func (s CPUSet) Intersects(o CPUSet) bool {
	for i := range min(len(s.words), len(o.words)) {
		if s.words[i]&o.words[i] != 0 {
			return true
		}
	}
	return false
}

// Union returns s ∪ o.
func (s CPUSet) Union(o CPUSet) CPUSet {
	if len(s.words) < len(o.words) {
		s, o = o, s
	}
	words := make([]uint64, len(s.words))
	copy(words, s.words)
	for i, w := range o.words {
		words[i] |= w
	}
	return CPUSet{words}
}

// UnionOf returns the union of sets.
func UnionOf(sets []CPUSet) CPUSet {
	size := 0
	for _, s := range sets {
		size = max(size, len(s.words))
	}
	words := make([]uint64, size)
	for _, s := range sets {
		for i, w := range s.words {
			words[i] |= w
		}
	}
	return CPUSet{words}
}

// Intersect returns s ∩ o.
func (s CPUSet) Intersect(o CPUSet) CPUSet {
	words := make([]uint64, min(len(s.words), len(o.words)))
	for i := range words {
		words[i] = s.words[i] & o.words[i]
	}
	return CPUSetFromWords(words)
}

// Minus returns the PUs of s that are not in o.
func (s CPUSet) Minus(o CPUSet) CPUSet {
	words := make([]uint64, len(s.words))
	copy(words, s.words)
	for i := range min(len(s.words), len(o.words)) {
		words[i] &^= o.words[i]
	}
	return CPUSetFromWords(words)
}

// All yields the PU numbers in ascending order.
func (s CPUSet) All() iter.Seq[int] {
	return func(yield func(int) bool) {
		for i, w := range s.words {
			for ; w != 0; w &= w - 1 {
				if !yield(i*64 + bits.TrailingZeros64(w)) {
					return
				}
			}
		}
	}
}

// Slice returns the PU numbers in ascending order.
func (s CPUSet) Slice() []int {
	out := make([]int, 0, s.Count())
	for c := range s.All() {
		out = append(out, c)
	}
	return out
}

// Key returns the set as a string for use as a map key. It is not printable; see String.
func (s CPUSet) Key() string {
	b := make([]byte, 0, len(s.words)*8)
	for _, w := range s.words {
		b = binary.LittleEndian.AppendUint64(b, w)
	}
	return string(b)
}
