package speculate

import (
	"crypto/sha256"
	"sync"
)

// Bounds of NGram.
const (
	maxBytes = 64 << 20 // of memory

	recentTokens = 1 << 15 // tokens of recent answers of one salt, in each of two generations
)

// NGram proposes the tokens that followed the last occurrence of the last tokens of a sequence, in
// the sequence itself or in recent answers to requests with the same salt.
type NGram struct {
	limit int64

	mu     sync.Mutex
	used   int64 // bytes of all indexes
	recent map[[sha256.Size]byte]*answers
	clock  uint64 // counts uses of answers
}

// answers holds recent answers of one salt. When the current generation is full, it replaces the
// previous one.
type answers struct {
	current, previous *index
	lastUse           uint64
}

// NewNGram returns a drafter that uses at most limit bytes. At the bound it discards the recent
// answers of the salt that was not used for the longest time; if that does not suffice, new
// sequences get no drafts from their own text and growing ones stop learning.
func NewNGram(limit int64) *NGram {
	return &NGram{limit: limit, recent: map[[sha256.Size]byte]*answers{}}
}

// Name returns "ngram".
func (*NGram) Name() string { return "ngram" }

// Bytes returns the memory of all indexes.
func (g *NGram) Bytes() int64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.used
}

// Open indexes the prompt.
func (g *NGram) Open(salt [sha256.Size]byte, prompt []int32) Text {
	t := &ngramText{of: g, salt: salt}
	if t.own = g.take(len(prompt) + 1); t.own != nil {
		for _, id := range prompt {
			t.own.add(id)
		}
	}
	t.answer = len(prompt)
	return t
}

// take returns an index with room for n tokens, or nil if it does not fit the bound.
func (g *NGram) take(n int) *index {
	g.mu.Lock()
	ok := g.reserve(int64(capacityFor(n) * tokenBytes))
	g.mu.Unlock()
	if !ok {
		return nil
	}
	return newIndex(n)
}

// reserve counts n bytes as used if they fit the bound. The lock is held.
func (g *NGram) reserve(n int64) bool {
	for g.used+n > g.limit {
		var oldest *[sha256.Size]byte
		for salt, a := range g.recent {
			if oldest == nil || a.lastUse < g.recent[*oldest].lastUse {
				oldest = &salt
			}
		}
		if oldest == nil {
			return false
		}
		g.used -= g.recent[*oldest].bytes()
		delete(g.recent, *oldest)
	}
	g.used += n
	return true
}

func (a *answers) bytes() (n int64) {
	for _, x := range [...]*index{a.current, a.previous} {
		if x != nil {
			n += x.bytes()
		}
	}
	return n
}

// ngramText is a sequence of an NGram.
type ngramText struct {
	of     *NGram
	salt   [sha256.Size]byte
	own    *index // of the sequence; nil if it did not fit the bound or after Close
	answer int    // position of the first token of the answer
}

// Append adds a token. If the index cannot grow, the sequence gets no further drafts.
func (t *ngramText) Append(token int32) {
	if t.own == nil {
		return
	}
	if t.own.full() {
		size := t.own.bytes()
		t.of.mu.Lock()
		ok := t.of.reserve(size) // the capacity doubles
		t.of.mu.Unlock()
		if !ok {
			t.release()
			return
		}
		t.own.resize(2 * cap(t.own.tokens))
	}
	t.own.add(token)
}

// Draft prefers the longest match, and the sequence itself among equal ones.
func (t *ngramText) Draft(dst []int32, n int) ([]int32, int) {
	if t.own == nil || n < 1 {
		return dst, 0
	}
	at, matched := t.own.find(t.own.tokens)
	if matched < longestMatch {
		t.of.mu.Lock()
		defer t.of.mu.Unlock()
		if a := t.of.recent[t.salt]; a != nil {
			for _, x := range [...]*index{a.current, a.previous} {
				if x == nil {
					continue
				}
				if p, m := x.find(t.own.tokens); m > matched {
					return x.follow(dst, p, n), classOf(m)
				}
			}
		}
	}
	if matched == 0 {
		return dst, 0
	}
	return t.own.loop(dst, at, n), classOf(matched)
}

// Close adds the answer to the recent ones of its salt.
func (t *ngramText) Close() {
	if t.own == nil {
		return
	}
	answer := t.own.tokens[t.answer:]
	t.release()
	t.of.remember(t.salt, answer)
}

// release frees the index of the sequence.
func (t *ngramText) release() {
	t.of.mu.Lock()
	t.of.used -= t.own.bytes()
	t.of.mu.Unlock()
	t.own = nil
}

// remember adds an answer to the recent ones of a salt, as far as the bound allows.
func (g *NGram) remember(salt [sha256.Size]byte, answer []int32) {
	if len(answer) > recentTokens {
		answer = answer[len(answer)-recentTokens:]
	}
	if len(answer) == 0 {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.clock++
	a := g.recent[salt]
	if a == nil {
		a = &answers{}
	}
	a.lastUse = g.clock
	room := len(answer)
	if a.current != nil {
		room += len(a.current.tokens)
	}
	if room > recentTokens { // a new generation
		room = len(answer)
		if a.previous != nil {
			g.used -= a.previous.bytes()
		}
		a.previous, a.current = a.current, nil
	}
	grown := int64(capacityFor(room) * tokenBytes)
	if a.current != nil {
		grown -= a.current.bytes()
	}
	if grown > 0 {
		delete(g.recent, salt) // reserve must not discard it
		if !g.reserve(grown) {
			g.used -= a.bytes()
			return
		}
	}
	if a.current == nil {
		a.current = newIndex(room)
	} else if grown > 0 {
		a.current.resize(capacityFor(room))
	}
	for _, id := range answer {
		a.current.add(id)
	}
	g.recent[salt] = a
}
