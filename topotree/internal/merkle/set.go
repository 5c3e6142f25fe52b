package merkle

import "encoding/binary"

// Set is a set of hashes in an open-addressed table that uses the first bytes of a hash as its
// index. It takes less memory per member than a map. The zero value is empty. A Set must not be
// used concurrently.
type Set struct {
	slots []Hash // the zero hash marks a free slot
	count int
}

// Add adds a hash, which must not be zero, and reports whether it is new.
func (s *Set) Add(h Hash) bool {
	if 4*(s.count+1) > 3*len(s.slots) {
		s.grow()
	}
	at := s.find(h)
	if s.slots[at] == h {
		return false
	}
	s.slots[at] = h
	s.count++
	return true
}

// find returns the slot of a hash, or the free slot for it.
func (s *Set) find(h Hash) int {
	mask := len(s.slots) - 1
	at := int(binary.LittleEndian.Uint64(h[:8])) & mask
	for s.slots[at] != (Hash{}) && s.slots[at] != h {
		at = (at + 1) & mask
	}
	return at
}

func (s *Set) grow() {
	old := s.slots
	s.slots = make([]Hash, max(64, 2*len(old)))
	for _, h := range old {
		if h != (Hash{}) {
			s.slots[s.find(h)] = h
		}
	}
}
