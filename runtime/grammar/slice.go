package grammar

import (
	"bytes"
	"slices"
	"sync"

	"sandwich/runtime/grammar/internal/automaton"
)

// slice is a partition of the tokens of a vocabulary by a set of character classes. Many states
// accept any such characters and are left by others: their masks consist of all tokens of such
// characters, plus those tokens that continue with something that the state accepts after their
// first characters of the classes. Few distinct texts follow these, and many tokens share them.
type slice struct {
	of    automaton.Classes
	bytes automaton.ByteSet // first bytes of its characters
	plain trie              // tokens of these characters only, if the whole trie is used (Vocab.json)
	// Tokens with other characters, for classes that include multi-byte characters:
	rest   trie
	blanks trie    // those whose first other character is a control character; not in rest
	other  trie    // those that do not start with a character of the classes
	tails  trie    // those that start with such characters, by the rest of their text
	after  []trie  // the same by the number of such characters, 1 and more
	order  []int32 // tokens of these characters only, short ones first
	ends   [longRun + 1]int
	long   []int32 // those with more than longRun characters, and their lengths
	chars  []int
	size   int // of the vocabulary
	mu     sync.Mutex
	upTo   [longRun + 1][]uint64 // tokens of at most so many characters, created on demand
	use    partUse
}

// longRun is the length in characters that most tokens do not exceed.
const longRun = 32

// maxSlices is the largest number of slices that a grammar uses, and minSlice the smallest
// number of classes of a slice.
const (
	maxSlices = 12
	minSlice  = 20
)

func (v *Vocab) part(of automaton.Classes) *slice {
	s := &slice{of: of, bytes: of.Bytes(), size: v.size, after: []trie{{}}}
	var in [longRun + 1][]int32
	var rest, blanks, other, late []int32
	text := automaton.JSONClasses.Covers(of)
	begun := map[int][]int32{}
	tails := make([][]byte, len(v.text))
	for _, id := range v.all {
		n, tail := of.First(v.text[id])
		switch {
		case len(tail) > 0:
			if text && tail[0] < ' ' {
				blanks = append(blanks, id)
			} else {
				rest = append(rest, id)
			}
			if n == 0 {
				other = append(other, id)
				break
			}
			tails[id] = tail
			late, begun[n] = append(late, id), append(begun[n], id)
		case n > longRun:
			s.long, s.chars = append(s.long, id), append(s.chars, n)
		default:
			in[n] = append(in[n], id)
		}
	}
	for n, ids := range in {
		s.order = append(s.order, ids...)
		s.ends[n] = len(s.order)
	}
	if of.SomeMany() {
		s.rest, s.blanks, s.other = newTrie(rest, v.text), newTrie(blanks, v.text), newTrie(other, v.text)
		s.rest.without, s.blanks.without, s.other.without = of, of, of
	}
	byTail := func(ids []int32) trie {
		slices.SortStableFunc(ids, func(a, b int32) int { return bytes.Compare(tails[a], tails[b]) })
		return newTrie(ids, tails)
	}
	s.tails = byTail(late)
	for n, ids := range begun {
		for len(s.after) <= n {
			s.after = append(s.after, trie{})
		}
		s.after[n] = byTail(ids)
	}
	return s
}

// held returns the tokens of the classes, sorted by their texts.
func (s *slice) held(text [][]byte) []int32 {
	ids := slices.Concat(s.order, s.long)
	slices.SortFunc(ids, func(a, b int32) int { return bytes.Compare(text[a], text[b]) })
	return ids
}

// exactly adds the tokens of exactly n characters of the classes to a mask; n must not exceed
// longRun.
func (s *slice) exactly(to *Mask, n int) {
	for _, id := range s.order[s.ends[n-1]:s.ends[n]] {
		to.add(id)
	}
}

// add adds the tokens of at most run characters of the classes to a mask.
func (s *slice) add(to *Mask, run int32) {
	to.or(s.tokens(min(run, longRun)))
	for i, id := range s.long {
		if s.chars[i] <= int(run) {
			to.add(id)
		}
	}
}

// tokens returns the tokens of at most n characters, without long ones, as bits.
func (s *slice) tokens(n int32) []uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.upTo[n] == nil {
		s.upTo[n] = make([]uint64, words64(s.size))
		for _, id := range s.order[:s.ends[n]] {
			s.upTo[n][id/64] |= 1 << (id % 64)
		}
	}
	return s.upTo[n]
}

// memory returns about how many bytes a slice takes.
func (s *slice) memory() int64 {
	n := int64(4*len(s.order)+16*len(s.long)) + int64(len(s.upTo)*8*words64(s.size))
	for _, t := range append([]trie{s.plain, s.rest, s.blanks, s.other, s.tails}, s.after...) {
		n += int64(36*len(t.nodes) + 4*len(t.tokens))
	}
	return n
}
