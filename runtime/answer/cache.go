package answer

import (
	"container/list"
	"context"
	"crypto/sha256"
	"errors"
	"sync"

	"sandwich/runtime/api"
	"sandwich/runtime/grammar"
)

// cacheBytes bounds the memory of grammars that no request uses: their programs, masks and matchers
// of finished answers.
const cacheBytes = 24 << 20

// grammarCache caches compiled grammars with the masks and states that answers computed, because
// agents send the same tools with every request. Concurrent requests share masks; each has its own
// Matcher, which is kept for later requests when it ends. The least recently used grammars are
// dropped when memory runs out.
type grammarCache struct {
	work *compilations

	mu    sync.Mutex // guards the fields below
	left  int64      // bytes that may still be cached
	byKey map[grammarKey]*cachedGrammar
	used  list.List // of *cachedGrammar with idle matchers, most recently used first

	compiled, reused int64 // counts of find
}

type grammarKey [sha256.Size]byte

// cachedGrammar is a cached grammar. The lock of grammarCache guards its fields, except those that
// the compilation sets before it closes ready.
type cachedGrammar struct {
	key   grammarKey
	ready chan struct{}
	err   error
	g     *grammar.Grammar
	notes []string // warnings for each request that uses the grammar
	size  int64    // bytes of the program
	users int
	idle  []*grammar.Matcher
	bytes int64         // cached bytes: of idle, and of the grammar while it has no users
	place *list.Element // nil if idle is empty
}

// lease is a Matcher in use by an answer.
type lease struct {
	*grammar.Matcher
	of *cachedGrammar
}

// newGrammarCache returns a cache that holds up to bytes.
func newGrammarCache(bytes int64, work *compilations) *grammarCache {
	f := &grammarCache{work: work, left: bytes, byKey: map[grammarKey]*cachedGrammar{}}
	work.programs.reclaim = f.reclaim
	return f
}

// grammarSpec states how to compile a grammar and which vocabulary its answers use.
type grammarSpec struct {
	class   api.Class
	vocab   func() *grammar.Vocab
	compile func(m *grammar.Meter) (*grammar.Grammar, []string, error)
}

// take returns a Matcher for a key. If several requests need the same new grammar, one of them
// compiles it.
func (f *grammarCache) take(ctx context.Context, key grammarKey, o grammarSpec) (*lease, error) {
	for {
		t := f.find(ctx, key, o)
		select {
		case <-t.ready:
		case <-ctx.Done():
			f.leave(t, nil)
			return nil, ctx.Err()
		}
		if t.err == nil {
			return &lease{f.matcher(t, o.vocab), t}, nil
		}
		f.leave(t, nil)
		if ctx.Err() != nil || !errors.Is(t.err, context.Canceled) && !errors.Is(t.err, context.DeadlineExceeded) {
			return nil, t.err
		}
		// The request that compiled the grammar was cancelled: try again.
	}
}

// find returns the entry of a key or compiles its grammar.
func (f *grammarCache) find(ctx context.Context, key grammarKey, o grammarSpec) *cachedGrammar {
	f.mu.Lock()
	if t := f.byKey[key]; t != nil {
		defer f.mu.Unlock()
		t.users++
		f.count(t)
		f.reused++
		return t
	}
	t := &cachedGrammar{key: key, ready: make(chan struct{}), users: 1, err: errors.New("the compilation was aborted")}
	f.byKey[key] = t
	f.compiled++
	f.mu.Unlock()
	var first *grammar.Matcher
	defer func() { // also after a panic in compile
		f.mu.Lock()
		defer f.mu.Unlock()
		if t.err != nil {
			delete(f.byKey, key)
		} else {
			t.idle = append(t.idle, first)
			f.count(t)
		}
		close(t.ready)
	}()
	g, size, err := f.work.run(ctx, source{class: o.class, compile: func(m *grammar.Meter) (*grammar.Grammar, error) {
		g, notes, err := o.compile(m)
		t.notes = notes
		return g, err
	}, finish: func(g *grammar.Grammar) {
		first = g.Matcher(o.vocab()) // prepares the vocabulary for the grammar
		first.End()
	}})
	t.g, t.size, t.err = g, size, err
	return t
}

// matcher returns an idle Matcher, or a new one.
func (f *grammarCache) matcher(t *cachedGrammar, v func() *grammar.Vocab) *grammar.Matcher {
	f.mu.Lock()
	n := len(t.idle)
	if n == 0 {
		f.mu.Unlock()
		return t.g.Matcher(v())
	}
	m := t.idle[n-1]
	t.idle = t.idle[:n-1]
	f.count(t)
	f.mu.Unlock()
	m.Again()
	return m
}

// put ends the use of a Matcher whose answer is over. It does nothing for nil.
func (f *grammarCache) put(h *lease) {
	switch {
	case h == nil:
	case h.End():
		f.leave(h.of, h.Matcher)
	default:
		f.leave(h.of, nil)
	}
}

// leave ends a use of an entry and caches m unless it is nil.
func (f *grammarCache) leave(t *cachedGrammar, m *grammar.Matcher) {
	f.mu.Lock()
	t.users--
	if m != nil {
		t.idle = append(t.idle, m)
	}
	var gone []*cachedGrammar
	f.count(t)
	for f.used.Len() > 0 && (f.left < 0 || f.work.memory.Short()) {
		gone = f.drop(f.used.Back().Value.(*cachedGrammar), gone)
	}
	gone = f.forget(t, gone)
	idle := t.users == 0
	f.mu.Unlock()
	for _, t := range gone {
		f.work.drop(t.g, t.size)
	}
	if idle {
		f.work.programs.retry()
	}
}

// count updates the cached bytes of an entry after a change of its matchers or users, and marks it
// as recently used.
func (f *grammarCache) count(t *cachedGrammar) {
	bytes := int64(0)
	for _, m := range t.idle {
		bytes += m.Memory()
	}
	if len(t.idle) > 0 && t.users == 0 {
		bytes += t.g.Memory()
	}
	f.left -= bytes - t.bytes
	t.bytes = bytes
	switch {
	case len(t.idle) == 0 && t.place == nil:
	case len(t.idle) == 0:
		f.used.Remove(t.place)
		t.place = nil
	case t.place == nil:
		t.place = f.used.PushFront(t)
	default:
		f.used.MoveToFront(t.place)
	}
}

// drop releases the idle matchers of an entry. It appends the entry to gone if nothing else holds
// it.
func (f *grammarCache) drop(t *cachedGrammar, gone []*cachedGrammar) []*cachedGrammar {
	t.idle = nil
	f.count(t)
	return f.forget(t, gone)
}

// forget removes an entry without users and idle matchers, and appends it to gone if it has a
// grammar.
func (f *grammarCache) forget(t *cachedGrammar, gone []*cachedGrammar) []*cachedGrammar {
	if t.users > 0 || len(t.idle) > 0 || f.byKey[t.key] != t {
		return gone
	}
	delete(f.byKey, t.key)
	if t.g == nil {
		return gone
	}
	return append(gone, t)
}

// reclaim drops the least recently used grammar that no request uses and returns the bytes of its
// program, or 0 if there is none.
func (f *grammarCache) reclaim() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	for e := f.used.Back(); e != nil; e = e.Prev() {
		if t := e.Value.(*cachedGrammar); t.users == 0 {
			f.drop(t, nil)
			t.g.Release()
			return t.size
		}
	}
	return 0
}

// kept returns the cached bytes of grammars that no request uses.
func (f *grammarCache) kept(limit int64) int64 { return limit - f.left }
