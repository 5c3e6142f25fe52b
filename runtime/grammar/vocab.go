package grammar

import (
	"bytes"
	"math/bits"
	"slices"
	"sync"
	"unicode/utf8"

	"sandwich/runtime/grammar/internal/automaton"
)

// Vocab contains the tokens of a model as tries over their bytes. It is created once per model and
// may be used concurrently.
type Vocab struct {
	size  int
	ends  []int32   // tokens that end an answer
	text  [][]byte  // by token
	all   []int32   // tokens with a text, sorted by it
	json  *slice    // by the characters of jsonClasses
	chars *charTrie // by the characters that a JSON string contains unescaped

	making    sync.Mutex // held while a part is created; locked before mu
	mu        sync.Mutex
	slices    map[automaton.Classes]*slice
	kinds     map[string]*kindTrie // by kinds.name
	parted    int64                // bytes of slices and kinds, at most maxParted
	maxParted int64
	uses      int64                   // number of uses of parts by all grammars
	begins    [utf8.RuneSelf][]uint64 // tokens by the ASCII character that they start with
}

// ControlMark precedes the spelling of a control token in the bytes of a grammar. It does not occur
// in text, so a control token is allowed only where a grammar names it (Control), and text with the
// same spelling is not taken for it.
const ControlMark = "\xff"

// NewVocab creates a Vocab. text contains the bytes of each token: ControlMark and the spelling for
// control tokens, nothing for tokens that an answer under a grammar must not contain. ends are the
// tokens that end an answer.
func NewVocab(text [][]byte, ends []int32) *Vocab {
	v := &Vocab{size: len(text), ends: slices.Clone(ends), text: text, slices: map[automaton.Classes]*slice{},
		kinds: map[string]*kindTrie{}, maxParted: sliceBytes}
	var ids []int32
	for id, t := range text {
		if len(t) > 0 && len(t) <= maxTokenBytes && !slices.Contains(ends, int32(id)) {
			ids = append(ids, int32(id))
		}
	}
	slices.SortFunc(ids, func(a, b int32) int { return bytes.Compare(text[a], text[b]) })
	v.all = ids
	v.json = v.part(automaton.JSONClasses)
	v.chars = newCharTrie(ids, text)
	made := 0
	v.byKinds(automaton.AnyKind, &made)
	v.json.plain = newTrie(v.json.held(text), text)
	return v
}

// begin returns the tokens that start with an ASCII character, as bits.
func (v *Vocab) begin(with byte) []uint64 {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.begins[with] == nil {
		bits := make([]uint64, words64(v.size))
		from, _ := slices.BinarySearchFunc(v.all, with, func(id int32, b byte) int {
			return int(v.text[id][0]) - int(b)
		})
		for _, id := range v.all[from:] {
			if v.text[id][0] != with {
				break
			}
			bits[id/64] |= 1 << (id % 64)
		}
		v.begins[with] = bits
	}
	return v.begins[with]
}

// Size returns the number of tokens.
func (v *Vocab) Size() int { return v.size }

// Ends reports whether a token ends an answer.
func (v *Vocab) Ends(id int32) bool { return slices.Contains(v.ends, id) }

func words64(n int) int { return (n + 63) / 64 }

// Mask is a set of tokens.
type Mask struct {
	bits  []uint64
	count int
}

// Has reports whether a token is in the set.
func (m *Mask) Has(id int32) bool { return m.bits[id/64]>>(id%64)&1 != 0 }

// Count returns the number of tokens in the set.
func (m *Mask) Count() int { return m.count }

// Only returns the token of a set with a single token.
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

// clear empties the set for a vocabulary of the given size.
func (m *Mask) clear(size int) {
	if m.bits == nil {
		m.bits = make([]uint64, words64(size))
	}
	clear(m.bits)
}

func (m *Mask) or(bits []uint64) {
	for i, w := range bits {
		m.bits[i] |= w
	}
}

func (m *Mask) add(id int32) { m.bits[id/64] |= 1 << (id % 64) }

func (m *Mask) remove(id int32) { m.bits[id/64] &^= 1 << (id % 64) }

func (m *Mask) recount() {
	m.count = 0
	for _, w := range m.bits {
		m.count += bits.OnesCount64(w)
	}
}
