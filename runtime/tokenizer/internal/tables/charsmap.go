package tables

import (
	"bytes"
	"encoding/binary"
	"strings"
)

// CharsMap is SentencePiece's precompiled character map: a double-array trie (Yata et al.: A
// compact static double-array keeping character codes, 2007) from strings to their normal forms.
// Each normal form ends in a zero byte.
type CharsMap struct {
	nodes []uint32
	forms string
}

// maxForm is the largest accepted normal form, in bytes. It bounds how much longer a text can
// become. The longest form of Unicode's NFKC has 33 bytes.
const maxForm = 128

// NewCharsMap parses a precompiled character map. It returns false if the map is damaged.
func NewCharsMap(blob []byte) (*CharsMap, bool) {
	if len(blob) < 4 {
		return nil, false
	}
	size := uint64(binary.LittleEndian.Uint32(blob))
	if blob = blob[4:]; size%4 != 0 || size > uint64(len(blob)) {
		return nil, false
	}
	for form := range bytes.SplitSeq(blob[size:], []byte{0}) {
		if len(form) > maxForm {
			return nil, false
		}
	}
	m := &CharsMap{nodes: make([]uint32, size/4), forms: string(blob[size:])}
	for i := range m.nodes {
		m.nodes[i] = binary.LittleEndian.Uint32(blob[4*i:])
	}
	return m, true
}

// node returns the fields of an array entry. For an index out of range it returns an entry that
// matches no character.
func (m *CharsMap) node(at uint32) (base, check uint32, leaf bool) {
	if uint64(at) >= uint64(len(m.nodes)) {
		return 0, 1 << 31, false
	}
	v := m.nodes[at]
	return v >> 10 << (v & (1 << 9) >> 6), v & (1<<31 | 0xff), v>>8&1 > 0
}

// Prefix returns the normal form of the longest string in the map that text starts with, and the
// length of that string in bytes. ok is false if there is no such string.
func (m *CharsMap) Prefix(text string) (form string, n int, ok bool) {
	at, _, _ := m.node(0)
	found := uint32(0)
	for i := range len(text) {
		c := uint32(text[i])
		if c == 0 {
			break
		}
		at ^= c
		base, check, leaf := m.node(at)
		if check != c {
			break
		}
		if at ^= base; leaf && uint64(at) < uint64(len(m.nodes)) {
			n, found = i+1, m.nodes[at]&(1<<31-1)
		}
	}
	if n == 0 || uint64(found) >= uint64(len(m.forms)) {
		return "", 0, false
	}
	form, _, _ = strings.Cut(m.forms[found:], "\x00")
	return form, n, true
}
