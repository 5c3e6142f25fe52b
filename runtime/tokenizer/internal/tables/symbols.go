// Package tables holds the look-up structures of a vocabulary: symbols by their bytes, merge rules,
// tries of tokens, special tokens in text, and SentencePiece's character map.
package tables

import (
	"bytes"
	"hash/maphash"
)

// Symbols are byte strings numbered from 0: first the tokens of the vocabulary in order, then the
// inner symbols, which occur while merging but are not tokens. All bytes lie in one block.
type Symbols struct {
	blob  []byte
	start []uint32 // symbol i is blob[start[i]:start[i+1]]

	// index is a hash table of symbol number + 1 by bytes (open addressing, a power of two slots, 0
	// is free). It contains only symbols that merging may produce.
	index []int32
	used  int
	seed  maphash.Seed
}

// NewSymbols returns an empty set with space for capacity symbols of the given total size.
func NewSymbols(capacity, bytes int) *Symbols {
	size := 1024
	for size < 2*capacity {
		size *= 2
	}
	return &Symbols{
		blob:  make([]byte, 0, bytes),
		start: append(make([]uint32, 0, capacity+1), 0),
		index: make([]int32, size),
		seed:  maphash.MakeSeed(),
	}
}

// count returns the number of symbols.
func (s *Symbols) count() int { return len(s.start) - 1 }

// Bytes returns the bytes of symbol id. The caller must not change them.
func (s *Symbols) Bytes(id int32) []byte {
	from, to := s.start[id], s.start[id+1]
	return s.blob[from:to:to]
}

// Add appends a symbol and returns its number.
func (s *Symbols) Add(b []byte) int32 {
	s.blob = append(s.blob, b...)
	s.start = append(s.start, uint32(len(s.blob)))
	return int32(s.count() - 1)
}

// Enter adds symbol id to the index. If two symbols have the same bytes, the index keeps the first.
func (s *Symbols) Enter(id int32) {
	if 2*s.used >= len(s.index) {
		s.grow()
	}
	if slot, found := s.slot(s.Bytes(id)); !found {
		s.index[slot] = id + 1
		s.used++
	}
}

func (s *Symbols) grow() {
	old := s.index
	s.index = make([]int32, 2*len(old))
	for _, entry := range old {
		if entry != 0 {
			slot, _ := s.slot(s.Bytes(entry - 1))
			s.index[slot] = entry
		}
	}
}

// slot returns the position of b in the index, or of the free slot where b would be stored.
func (s *Symbols) slot(b []byte) (slot int, found bool) {
	mask := uint64(len(s.index) - 1)
	for at := maphash.Bytes(s.seed, b) & mask; ; at = (at + 1) & mask {
		entry := s.index[at]
		if entry == 0 {
			return int(at), false
		}
		if bytes.Equal(s.Bytes(entry-1), b) {
			return int(at), true
		}
	}
}

// Find returns the indexed symbol with the given bytes, or -1.
func (s *Symbols) Find(b []byte) int32 {
	if slot, found := s.slot(b); found {
		return s.index[slot] - 1
	}
	return -1
}

// FindString is like find, without a copy of the string.
func (s *Symbols) FindString(text string) int32 {
	mask := uint64(len(s.index) - 1)
	for at := maphash.String(s.seed, text) & mask; ; at = (at + 1) & mask {
		entry := s.index[at]
		if entry == 0 {
			return -1
		}
		if string(s.Bytes(entry-1)) == text {
			return entry - 1
		}
	}
}

// Intern returns the symbol with the given bytes. It adds an inner symbol if there is none.
func (s *Symbols) Intern(b []byte) int32 {
	if id := s.Find(b); id >= 0 {
		return id
	}
	id := s.Add(b)
	s.Enter(id)
	return id
}
