// Package merkle hashes trees bottom-up. The hash of a node covers its label and the multiset of
// its children's hashes, so it does not depend on the order of siblings.
package merkle

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"slices"
)

// Hash identifies a subtree.
type Hash = [16]byte

// Label is what the hash of a node covers in addition to its children.
type Label struct {
	Kind    uint8
	Virtual bool
	Color   string
	Offsets []int // of the siblings that a group took; nil for hardware
}

// Children is a number of children with the same hash.
type Children struct {
	Hash  Hash
	Count int
}

// Sum hashes a node. It sorts children in place.
func Sum(l Label, children []Children) Hash {
	if len(children) > 1 {
		slices.SortFunc(children, func(a, b Children) int { return bytes.Compare(a.Hash[:], b.Hash[:]) })
	}
	var scratch [256]byte
	b := append(scratch[:0], l.Kind, 0, byte(len(l.Color)/2), byte(len(l.Color)/2>>8))
	if l.Virtual {
		b[1] = 1
	}
	b = append(b, l.Color...)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(l.Offsets)))
	for _, o := range l.Offsets {
		b = binary.LittleEndian.AppendUint32(b, uint32(o))
	}
	for i := 0; i < len(children); {
		count, first := 0, children[i].Hash
		for ; i < len(children) && children[i].Hash == first; i++ {
			count += children[i].Count
		}
		b = append(b, first[:]...)
		b = binary.LittleEndian.AppendUint32(b, uint32(count))
	}
	sum := sha256.Sum256(b)
	return Hash(sum[:16])
}
