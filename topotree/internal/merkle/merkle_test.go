package merkle

import (
	"encoding/binary"
	"slices"
	"testing"
)

func hash(n int) (h Hash) {
	binary.LittleEndian.PutUint64(h[:], uint64(n)<<40) // many hashes with the same slot
	binary.LittleEndian.PutUint64(h[8:], uint64(n)+1)
	return h
}

// TestSumOrder checks that a hash depends on the label and the multiset of children only.
func TestSumOrder(t *testing.T) {
	a, b := hash(1), hash(2)
	base := Sum(Label{Kind: 3, Color: "\x00\x01"}, []Children{{a, 2}, {b, 1}})
	for _, children := range [][]Children{{{b, 1}, {a, 2}}, {{a, 1}, {b, 1}, {a, 1}}} {
		if Sum(Label{Kind: 3, Color: "\x00\x01"}, slices.Clone(children)) != base {
			t.Errorf("the order or grouping of %v changes the hash", children)
		}
	}
	for _, c := range []struct {
		label    Label
		children []Children
	}{
		{Label{Kind: 4, Color: "\x00\x01"}, []Children{{a, 2}, {b, 1}}},
		{Label{Kind: 3, Color: "\x00\x02"}, []Children{{a, 2}, {b, 1}}},
		{Label{Kind: 3, Color: "\x00\x01", Virtual: true}, []Children{{a, 2}, {b, 1}}},
		{Label{Kind: 3, Color: "\x00\x01", Offsets: []int{0, 2}}, []Children{{a, 2}, {b, 1}}},
		{Label{Kind: 3, Color: "\x00\x01"}, []Children{{a, 1}, {b, 2}}},
		{Label{Kind: 3, Color: "\x00\x01"}, nil},
	} {
		if Sum(c.label, c.children) == base {
			t.Errorf("%+v with %v has the hash of another node", c.label, c.children)
		}
	}
}

func TestSet(t *testing.T) {
	var s Set
	for round := range 2 {
		for n := range 1000 {
			if isNew := s.Add(hash(n)); isNew != (round == 0) {
				t.Fatalf("round %d: hash %d is new: %v", round, n, isNew)
			}
		}
	}
}
