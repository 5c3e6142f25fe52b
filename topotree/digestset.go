package topotree

import "encoding/binary"

// digestSet is a set of digests in an open-addressed table: digests are uniform already, so that
// the first bytes are the hash. It costs 16 to 43 bytes a member, a third of a map.
type digestSet struct {
	slots []Digest // the zero digest marks a free slot
	count int
}

// add puts a digest into the set; false when it is there already. The zero digest cannot be told
// from a free slot: it is never a member, which costs one duplicate in 2^128.
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

// find returns the slot of a digest, or the free one where it belongs.
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
