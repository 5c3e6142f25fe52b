package topotree

import "encoding/binary"

// digestSet is a set of digests in an open-addressed table that uses the first bytes of a digest as
// hash. It takes less memory per member than a map.
type digestSet struct {
	slots []Digest // the zero digest marks a free slot
	count int
}

// add adds a digest and reports whether it is new. The zero digest marks a free slot and is never a
// member.
func (s *digestSet) add(d Digest) bool {
	if 4*(s.count+1) > 3*len(s.slots) {
		s.grow()
	}
	at := s.find(d)
	if s.slots[at] == d {
		return false
	}
	s.slots[at] = d
	s.count++
	return true
}

// find returns the slot of a digest, or the free slot for it.
func (s *digestSet) find(d Digest) int {
	mask := len(s.slots) - 1
	at := int(binary.LittleEndian.Uint64(d[:8])) & mask
	for s.slots[at] != (Digest{}) && s.slots[at] != d {
		at = (at + 1) & mask
	}
	return at
}

func (s *digestSet) grow() {
	old := s.slots
	s.slots = make([]Digest, max(64, 2*len(old)))
	for _, d := range old {
		if d != (Digest{}) {
			s.slots[s.find(d)] = d
		}
	}
}
