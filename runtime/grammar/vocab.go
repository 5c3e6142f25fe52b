package grammar

import (
	"bytes"
	"math/bits"
	"slices"
	"unicode/utf8"
)

// Vocab is the tokens of a model as tries over their bytes. It is made once a model and shared.
type Vocab struct {
	size  int
	ends  []int32  // tokens that end an answer
	text  [][]byte // by token
	plain trie     // tokens of whole characters that need no escape in a JSON string
	rest  trie     // all others
	// upTo[n] are the plain tokens of at most n characters.
	upTo [plainChars + 1][]uint64
}

// plainChars is the length in characters of the longest plain token; longer ones are in the rest.
const plainChars = 32

// ControlMark stands before the spelling of a control token in the bytes of a grammar. No text has
// it, so that a control token is allowed only where a grammar names it (Control), and letters that
// spell one are not it.
const ControlMark = "\xff"

// NewVocab makes a Vocab. text has the bytes of each token, ControlMark and the spelling for
// control tokens, none for those that an answer under a grammar never has; ends are the tokens that
// end it.
func NewVocab(text [][]byte, ends []int32) *Vocab {
	v := &Vocab{size: len(text), ends: slices.Clone(ends), text: text}
	var plain, rest []int32
	for n := range v.upTo {
		v.upTo[n] = make([]uint64, words64(v.size))
	}
	for id, t := range text {
		if len(t) == 0 || len(t) > maxTokenBytes || slices.Contains(ends, int32(id)) {
			continue
		}
		n := plainLength(t)
		if n == 0 || n > plainChars {
			rest = append(rest, int32(id))
			continue
		}
		plain = append(plain, int32(id))
		for ; n <= plainChars; n++ {
			v.upTo[n][id/64] |= 1 << (id % 64)
		}
	}
	v.plain, v.rest = newTrie(plain, text), newTrie(rest, text)
	return v
}

// Size is how many tokens there are.
func (v *Vocab) Size() int { return v.size }

// Ends tells whether a token ends an answer.
func (v *Vocab) Ends(id int32) bool { return slices.Contains(v.ends, id) }

func words64(n int) int { return (n + 63) / 64 }

// plainLength counts the characters of a text that may stand in a JSON string as they are; 0 where
// one may not, or is not whole.
func plainLength(t []byte) int {
	n := 0
	for i := 0; i < len(t); n++ {
		r, size := utf8.DecodeRune(t[i:])
		if r < 0x20 || r == '"' || r == '\\' || r == utf8.RuneError && size == 1 {
			return 0
		}
		i += size
	}
	return n
}

// trie is its nodes from left to right and from top to bottom, the root left out.
type trie struct {
	nodes  []trieNode
	tokens []int32 // in the order of the nodes that they end at
}

type trieNode struct {
	skip     int32 // the first node that is not below this one
	from, to int32 // tokens that end here
	past     int32 // the first token that ends neither here nor below
	depth    uint16
	b        byte
}

func newTrie(ids []int32, text [][]byte) trie {
	slices.SortFunc(ids, func(a, b int32) int { return bytes.Compare(text[a], text[b]) })
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
	}
	closeTo(0, len(ids))
	return t
}

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
