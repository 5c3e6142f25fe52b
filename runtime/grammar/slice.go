package grammar

import (
	"bytes"
	"slices"
	"sync"
	"unicode/utf8"
)

// slice parts the tokens of a vocabulary by some classes of characters. Many states take any such
// characters, and are left by others: the masks of these are the tokens of such characters, one
// set, and those others that go on as the state does behind their first characters of the classes.
// Few texts stand behind these, and many tokens share them.
type slice struct {
	of    classes
	bytes byteSet // that its characters begin with
	plain trie    // the tokens of the classes, where the whole trie is walked (Vocab.json)
	// The tokens that have other characters; made for classes with characters of several bytes.
	rest   trie
	blanks trie    // of them those whose first other character is a control character: not in rest
	other  trie    // those that begin with no character of the classes, whatever it is
	tails  trie    // those that begin with characters of the classes, by what is behind these
	after  []trie  // the same by how many such characters they begin with, 1 and more
	order  []int32 // the tokens of the classes, short ones first
	ends   [longRun + 1]int
	long   []int32 // those of more than longRun characters, and their lengths
	chars  []int
	size   int // of the vocabulary
	mu     sync.Mutex
	upTo   [longRun + 1][]uint64 // tokens of so many characters at most, made when they are asked for
	use    partUse
}

// longRun is the length in characters of most tokens.
const longRun = 32

// mostSlices is how many sets of classes a vocabulary is parted by, and leastSlice how many classes
// a set has for which it pays.
const (
	mostSlices = 12
	leastSlice = 20
)

// jsonClasses are the characters that stand in a JSON string as they are, but for those that end
// lines: expressions leave these out (a dot), and hardly a token has one.
var jsonClasses = func() (c classes) {
	c = manyBytes
	c.remove(lineClass)
	for b := byte(' '); b < utf8.RuneSelf; b++ {
		if b != '"' && b != '\\' {
			c.add(classOfByte[b])
		}
	}
	return c
}()

// memory is about how many bytes a slice takes.
func (s *slice) memory() int64 {
	n := int64(4*len(s.order)+16*len(s.long)) + int64(len(s.upTo)*8*words64(s.size))
	for _, t := range append([]trie{s.plain, s.rest, s.blanks, s.other, s.tails}, s.after...) {
		n += int64(36*len(t.nodes) + 4*len(t.tokens))
	}
	return n
}

func (v *Vocab) part(of classes) *slice {
	s := &slice{of: of, bytes: of.bytes(), size: v.size, after: []trie{{}}}
	var in [longRun + 1][]int32
	var rest, blanks, other, late []int32
	text := jsonClasses.covers(of)
	begun := map[int][]int32{}
	tails := make([][]byte, len(v.text))
	for _, id := range v.all {
		n, tail := of.first(v.text[id])
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
	if of.someMany() {
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

// first counts the characters of the classes that a text begins with; tail is what is behind them.
func (c classes) first(t []byte) (n int, tail []byte) {
	for len(t) > 0 {
		class, size := firstClass(t)
		if !c.has(class) {
			break
		}
		t = t[size:]
		n++
	}
	return n, t
}

// held are the tokens of the classes in the order of their texts.
func (s *slice) held(text [][]byte) []int32 {
	ids := slices.Concat(s.order, s.long)
	slices.SortFunc(ids, func(a, b int32) int { return bytes.Compare(text[a], text[b]) })
	return ids
}

// exactly puts the tokens of the classes of just so many characters, not more than longRun, into a
// mask.
func (s *slice) exactly(to *Mask, n int) {
	for _, id := range s.order[s.ends[n-1]:s.ends[n]] {
		to.add(id)
	}
}

// add puts the tokens of the classes of at most so many characters into a mask.
func (s *slice) add(to *Mask, run int32) {
	to.or(s.tokens(min(run, longRun)))
	for i, id := range s.long {
		if s.chars[i] <= int(run) {
			to.add(id)
		}
	}
}

// tokens are those of at most n characters, long ones left out, as bits.
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
