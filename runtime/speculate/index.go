package speculate

import (
	"math/bits"
	"slices"
)

// orders are the lengths of the n-grams that an index finds, longest first.
var orders = [...]int{6, 3, 2}

// minTokens is the number of tokens for which a new index has room.
const minTokens = 256

// tokenBytes is the memory of an index per token of its capacity: the token and one slot for each
// order.
const tokenBytes = 4 + 4*len(orders)

// index finds earlier occurrences of the last tokens of a text. Each order has a table without
// collision handling: a slot holds the position after the last n-gram with its hash, and a lookup
// compares the tokens. Older n-grams with the same hash are lost, which costs drafts and nothing
// else.
type index struct {
	tokens []int32
	tables [len(orders)][]int32 // position + 1, 0 for an empty slot
}

// newIndex returns an index with room for n tokens before it grows.
func newIndex(n int) *index {
	x := &index{}
	x.resize(capacityFor(n))
	return x
}

// capacityFor returns the capacity of an index of n tokens, a power of two.
func capacityFor(n int) int {
	return 1 << bits.Len(uint(max(n, minTokens)-1))
}

// bytes returns the memory of the index.
func (x *index) bytes() int64 { return int64(cap(x.tokens)*4 + len(orders)*len(x.tables[0])*4) }

// resize sets the capacity, a power of two, and indexes the tokens again.
func (x *index) resize(capacity int) {
	tokens := make([]int32, len(x.tokens), capacity)
	copy(tokens, x.tokens)
	x.tokens = tokens[:0]
	for i := range x.tables {
		x.tables[i] = make([]int32, capacity)
	}
	for _, t := range tokens {
		x.add(t)
	}
}

// full reports whether another token needs more memory.
func (x *index) full() bool { return len(x.tokens) == cap(x.tokens) }

// add appends a token and records the n-grams before it, each with the position of the token.
func (x *index) add(token int32) {
	at := len(x.tokens)
	x.tokens = append(x.tokens, token)
	for i, n := range orders {
		if at >= n {
			*x.slot(i, x.tokens[at-n:at]) = int32(at) + 1
		}
	}
}

// slot returns the slot of an n-gram in the table of an order.
func (x *index) slot(order int, gram []int32) *int32 {
	h := uint64(len(gram))
	for _, t := range gram {
		h = (h ^ uint64(uint32(t))) * 0x9e3779b97f4a7c15
		h ^= h >> 29
	}
	table := x.tables[order]
	return &table[h&uint64(len(table)-1)]
}

// find returns the position after an earlier occurrence of the last n-gram of a text, for the
// longest n-gram that occurs, and the number of tokens before it that match, at most longestMatch.
// The text may be the indexed one or another. matched is 0 if no n-gram occurs.
func (x *index) find(text []int32) (at, matched int) {
	for i, n := range orders {
		if len(text) < n {
			continue
		}
		gram := text[len(text)-n:]
		p := int(*x.slot(i, gram)) - 1
		if p < n || !slices.Equal(x.tokens[p-n:p], gram) {
			continue
		}
		m := n
		for m < longestMatch && m < len(text) && p-m > 0 && x.tokens[p-m-1] == text[len(text)-m-1] {
			m++
		}
		return p, m
	}
	return 0, 0
}

// longestMatch is the number of equal tokens beyond which longer matches are not distinguished.
const longestMatch = 32

// follow appends at most n tokens from position at on to dst.
func (x *index) follow(dst []int32, at, n int) []int32 {
	return append(dst, x.tokens[at:min(at+n, len(x.tokens))]...)
}

// loop appends n tokens from position at on, where the index holds the text itself: at its end it
// continues with the appended tokens, so that a text that repeats a period is continued beyond one
// period.
func (x *index) loop(dst []int32, at, n int) []int32 {
	first := len(dst)
	for i := range n {
		if at+i < len(x.tokens) {
			dst = append(dst, x.tokens[at+i])
		} else {
			dst = append(dst, dst[first+at+i-len(x.tokens)])
		}
	}
	return dst
}

// classOf returns the class of a draft after so many matching tokens.
func classOf(matched int) int {
	switch {
	case matched <= 2:
		return 0
	case matched <= 4:
		return 1
	case matched <= 8:
		return 2
	case matched < longestMatch:
		return 3
	}
	return 4
}
