package topotree

import (
	"encoding/hex"
	"fmt"

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

// Digest returns the Merkle hash of the subtree of n. Nodes with equal digests are equal except for
// the indexes of their objects.
func (n *Node) Digest() Digest { return n.digest }
