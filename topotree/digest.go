package topotree

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"

	"sandwich/internal/message"
)

// Digest is the Merkle hash of a tree or subtree. It depends on kind, color, shape, and on which
// siblings a group took, but not on the order of siblings or PU indexes (Sandwich 5.2.3).
type Digest [16]byte

// String returns the digest in hexadecimal.
func (d Digest) String() string { return hex.EncodeToString(d[:]) }

// MarshalText returns the hexadecimal form.
func (d Digest) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText parses the hexadecimal form.
func (d *Digest) UnmarshalText(text []byte) error {
	b, err := hex.DecodeString(string(text))
	if err != nil || len(b) != len(d) {
		return fmt.Errorf("digest %q is not %d hexadecimal digits", message.Clip(string(text), 60), 2*len(d))
	}
	copy(d[:], b)
	return nil
}

// Digest returns the Merkle hash of the whole tree.
func (t *Tree) Digest() Digest { return t.digest }

// childCount is a distinct child shape of a node with its number of occurrences.
type childCount struct {
	digest Digest
	count  int
}

// label is what a node's hash covers in addition to its children.
type label struct {
	kind    Kind
	virtual bool
	color   Color
	offsets []int // nil for hardware
}

// merkle hashes a node from its label and the multiset of its children's digests. It sorts children
// in place.
func merkle(l label, children []childCount) Digest {
	if len(children) > 1 {
		slices.SortFunc(children, func(a, b childCount) int { return bytes.Compare(a.digest[:], b.digest[:]) })
	}
	var scratch [256]byte
	b := append(scratch[:0], byte(l.kind), 0, byte(len(l.color)/2), byte(len(l.color)/2>>8))
	if l.virtual {
		b[1] = 1
	}
	b = append(b, l.color...)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(l.offsets)))
	for _, o := range l.offsets {
		b = binary.LittleEndian.AppendUint32(b, uint32(o))
	}
	for i := 0; i < len(children); {
		count, first := 0, children[i].digest
		for ; i < len(children) && children[i].digest == first; i++ {
			count += children[i].count
		}
		b = append(b, first[:]...)
		b = binary.LittleEndian.AppendUint32(b, uint32(count))
	}
	sum := sha256.Sum256(b)
	return Digest(sum[:16])
}
