package grammar

import (
	"bytes"
	"math/bits"
	"slices"
	"sync"
	"unicode/utf8"
)

// Vocab is the tokens of a model as tries over their bytes. It is made once a model and shared.
type Vocab struct {
	size int
	ends []int32  // tokens that end an answer
	text [][]byte // by token
	all  []int32  // those that have texts, in the order of these
	json *slice   // by what stands in a JSON string as it is

	mu     sync.Mutex
	slices map[classes]*slice
}

// ControlMark stands before the spelling of a control token in the bytes of a grammar. No text has
// it, so that a control token is allowed only where a grammar names it (Control), and letters that
// spell one are not it.
const ControlMark = "\xff"

// NewVocab makes a Vocab. text has the bytes of each token, ControlMark and the spelling for
// control tokens, none for those that an answer under a grammar never has; ends are the tokens that
// end it.
func NewVocab(text [][]byte, ends []int32) *Vocab {
	v := &Vocab{size: len(text), ends: slices.Clone(ends), text: text, slices: map[classes]*slice{}}
	var ids []int32
	for id, t := range text {
		if len(t) > 0 && len(t) <= maxTokenBytes && !slices.Contains(ends, int32(id)) {
			ids = append(ids, int32(id))
		}
	}
	slices.SortFunc(ids, func(a, b int32) int { return bytes.Compare(text[a], text[b]) })
	v.all = ids
	v.json = v.slice(jsonClasses)
	v.json.plain = newTrie(v.json.held(text), text)
	return v
}

// Size is how many tokens there are.
func (v *Vocab) Size() int { return v.size }

// Ends tells whether a token ends an answer.
func (v *Vocab) Ends(id int32) bool { return slices.Contains(v.ends, id) }

func words64(n int) int { return (n + 63) / 64 }

// firstClass is the class of a text's first character, and its length in bytes.
func firstClass(t []byte) (class uint8, size int) {
	if t[0] < utf8.RuneSelf {
		return classOfByte[t[0]], 1
	}
	r, size := utf8.DecodeRune(t)
	if r == utf8.RuneError && size == 1 {
		return brokenClass, 1
	}
	return runeClass, size
}

// trie is its nodes from left to right and from top to bottom, the root left out.
type trie struct {
	nodes  []trieNode
	tokens []int32 // in the order of the nodes that they end at
}

type trieNode struct {
	below    classes // of the characters that begin below it
	skip     int32   // the first node that is not below this one
	from, to int32   // tokens that end here
	past     int32   // the first token that ends neither here nor below
	depth    uint16
	chars    uint16 // that begin below it, of the token that has most
	b        byte
}

// newTrie makes a trie of tokens that are sorted by their texts.
func newTrie(ids []int32, text [][]byte) trie {
	t := trie{tokens: ids}
	var path []int32 // nodes from the root to the last token
	var last []byte
	closeTo := func(depth, token int) {
		for len(path) > depth {
			n := &t.nodes[path[len(path)-1]]
			n.skip, n.past = int32(len(t.nodes)), int32(token)
			path = path[:len(path)-1]
		}
	}
	var begins []uint8 // classes of the characters that begin at each byte; noClass inside of one
	for i, id := range ids {
		s := text[id]
		same := 0
		for same < len(s) && same < len(last) && s[same] == last[same] {
			same++
		}
		closeTo(same, i)
		for d := same; d < len(s); d++ {
			path = append(path, int32(len(t.nodes)))
			t.nodes = append(t.nodes, trieNode{b: s[d], depth: uint16(d), from: int32(i), to: int32(i)})
		}
		t.nodes[path[len(path)-1]].to = int32(i + 1)
		last = s
		begins = begins[:0]
		for j := 0; j < len(s); {
			class, size := firstClass(s[j:])
			begins = append(begins, class)
			for range size - 1 {
				begins = append(begins, noClass)
			}
			j += size
		}
		var below classes
		chars := uint16(0)
		for d := len(s) - 1; d >= 0; d-- {
			n := &t.nodes[path[d]]
			n.below, n.chars = n.below.or(below), max(n.chars, chars)
			if begins[d] != noClass {
				below.add(begins[d])
				chars++
			}
		}
	}
	closeTo(0, len(ids))
	return t
}

const noClass = 127

// maxTokenBytes is the length of the longest token that answers under a grammar may have.
const maxTokenBytes = 1024

// Mask is a set of tokens.
type Mask struct {
	bits  []uint64
	count int
}

// Has tells whether a token is in the set.
func (m *Mask) Has(id int32) bool { return m.bits[id/64]>>(id%64)&1 != 0 }

// Count is how many tokens are in the set.
func (m *Mask) Count() int { return m.count }

// Only is the one token of a set that has no other.
func (m *Mask) Only() (int32, bool) {
	if m.count != 1 {
		return 0, false
	}
	for i, w := range m.bits {
		if w != 0 {
			return int32(64*i + bits.TrailingZeros64(w)), true
		}
	}
	return 0, false
}

func (m *Mask) add(id int32) { m.bits[id/64] |= 1 << (id % 64) }

func (m *Mask) recount() {
	m.count = 0
	for _, w := range m.bits {
		m.count += bits.OnesCount64(w)
	}
}
