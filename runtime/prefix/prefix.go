// Package prefix keeps prefixes of prompts on disk: it finds, loads and writes the blocks of a KV
// cache that belong to them. It knows neither the scheduler nor the model: the engine gives it the
// cache, the memory of blocks, and a hash of everything that their content depends on.
package prefix

import (
	"context"
	"crypto/sha256"
	"sync"
	"sync/atomic"
	"time"

	"sandwich/runtime/kvcache"
	"sandwich/runtime/kvcache/disk"
)

// Cached is the cache of the engine. Methods may be called concurrently.
type Cached interface {
	// Pin and Unpin hold a cached block while it is copied (kvcache.Cache.Pin).
	Pin(store int, k *kvcache.Key) (kvcache.BlockID, bool)
	Unpin(store int, id kvcache.BlockID)
	// Settle waits until blocks of prompts that were computed can be found, or ctx ends.
	Settle(ctx context.Context)
	// Has reports whether a store has a cached block with a key.
	Has(store int, k *kvcache.Key) bool
}

// Options configures New.
type Options struct {
	Store    *disk.Store
	Identity [sha256.Size]byte // of the content of blocks
	Model    string            // name of the model, for lists
	Portable bool              // blocks have the same bits on every machine
	Kinds    []kvcache.Kind    // of the stores
	Sizes    []int64           // bytes of a block, by store; 0: the store has no content
	Parts    func(store int, id kvcache.BlockID) [][]byte
	Cached   Cached
	// Compute predicts the time of computing so many tokens of a prompt from its beginning.
	Compute func(tokens int) time.Duration
}

// Public is the salt of prefixes that every API key may read. Requests of clients never have it:
// only the verbs of `sandwich cache` write under it.
var Public = kvcache.Salt(sha256.Sum256([]byte("sandwich: prefixes that every API key may read")))

// Cache finds, loads and writes prefixes. Its methods may be called concurrently.
type Cache struct {
	Options
	seen   seen
	jobs   chan job
	ctx    context.Context // ends with Close
	stop   func()
	done   chan struct{} // closed when the writer has ended
	mu     sync.Mutex
	reads  rate
	writes rate
	closed bool
	// comparing counts the calls of Compare that read blocks.
	comparing sync.WaitGroup
	counts    counts
}

// counts are the counters of Stats.
type counts struct {
	hits, misses, failed, dropped, tokens, nanos atomic.Int64
}

// Stats are totals since New.
type Stats struct {
	disk.Stats
	Hits, Misses int64 // prompts of which a prefix was, or was not, on disk
	Failed       int64 // loads that failed, so that the prompt was computed
	Dropped      int64 // prefixes that were not written because too many others waited
	LoadedTokens int64
	LoadTime     time.Duration
}

// rate is the bytes per second of recent loads or writes.
type rate struct {
	now      float64
	measured bool
}

// unknownRate is the rate of loads before the first one, in bytes per second.
const unknownRate = 500e6

// New returns a cache over a store and starts its writer.
func New(o Options) *Cache {
	ctx, stop := context.WithCancel(context.Background())
	c := &Cache{Options: o, jobs: make(chan job, maxJobs), ctx: ctx, stop: stop, done: make(chan struct{}),
		reads: rate{now: unknownRate}, writes: rate{now: o.Store.WriteRate()}}
	go c.write()
	return c
}

// Close stops the writer. Prefixes that are not written yet are dropped.
func (c *Cache) Close() {
	c.stop()
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.comparing.Wait()
	<-c.done
}

// Flush waits until the prefixes that were noted before are written. It returns ctx's error if ctx
// ends before, or context.Canceled if the cache is closed.
func (c *Cache) Flush(ctx context.Context) error {
	end := job{written: make(chan struct{})}
	select {
	case c.jobs <- end:
	case <-c.done:
		return context.Canceled
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case <-end.written:
		return nil
	case <-c.done:
		return context.Canceled
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Stats returns the totals.
func (c *Cache) Stats() Stats {
	n := &c.counts
	return Stats{Stats: c.Store.Stats(), Hits: n.hits.Load(), Misses: n.misses.Load(), Failed: n.failed.Load(),
		Dropped: n.dropped.Load(), LoadedTokens: n.tokens.Load(), LoadTime: time.Duration(n.nanos.Load())}
}

// Hit is a prefix of a prompt that is on disk. The zero value is none.
type Hit struct {
	Positions int   // length of the prefix, a multiple of kvcache.BlockTokens
	Bytes     int64 // to read for the whole prefix
	keys      []kvcache.Key
}

// name returns the name of the object of a piece.
func (c *Cache) name(p kvcache.Piece, keys []kvcache.Key) disk.Name {
	return disk.NameOf(c.Identity, c.Kinds[p.Store].Name(), keys[p.Block])
}

// Find returns the longest prefix of a prompt, shorter than the prompt, that is on disk under a
// salt or the public one. It ignores imported blocks that were not compared.
func (c *Cache) Find(salt kvcache.Salt, prompt []int32) (best Hit) {
	full := (len(prompt) - 1) / kvcache.BlockTokens
	if full < 1 {
		return Hit{}
	}
	for _, s := range []kvcache.Salt{salt, Public} {
		h := Hit{keys: kvcache.Keys(s, prompt[:full*kvcache.BlockTokens])}
		has := c.Store.Has
		if s == Public { // as all imported prefixes are
			has = c.checked
		}
		h.Positions = c.longest(h.keys, has)
		if h.Positions > best.Positions || best.Positions == 0 {
			best = h
		}
		if salt == Public {
			break
		}
	}
	if best.Positions == 0 {
		c.counts.misses.Add(1)
		return best
	}
	c.counts.hits.Add(1)
	best.Bytes = c.bytes(best.Positions)
	return best
}

// checked reports whether an object exists that was computed here or was compared.
func (c *Cache) checked(n disk.Name) bool { return c.Store.Has(n) && !c.Store.Unchecked(n) }

// longest returns the greatest position from which a text with these keys can resume with the
// objects for which has returns true.
func (c *Cache) longest(keys []kvcache.Key, has func(disk.Name) bool) int {
	n := len(keys)
	for store, k := range c.Kinds {
		if c.Sizes[store] == 0 || k.Most() != kvcache.All {
			continue
		}
		for b := range n {
			if !has(c.name(kvcache.Piece{Store: store, Block: b}, keys)) {
				n = b
				break
			}
		}
	}
	for ; n > 0; n-- {
		if c.bounded(n, func(p kvcache.Piece) bool { return has(c.name(p, keys)) }) {
			break
		}
	}
	return n * kvcache.BlockTokens
}

// bounded reports whether has returns true for every block that stores which do not keep all
// positions need after n blocks.
func (c *Cache) bounded(n int, has func(p kvcache.Piece) bool) bool {
	for store, k := range c.Kinds {
		if c.Sizes[store] == 0 || k.Most() == kvcache.All {
			continue
		}
		for _, p := range kvcache.Needed(k, store, n*kvcache.BlockTokens) {
			if !has(p) {
				return false
			}
		}
	}
	return true
}

// bytes returns the size of the blocks that a sequence of n positions needs.
func (c *Cache) bytes(n int) (total int64) {
	for store, k := range c.Kinds {
		if c.Sizes[store] > 0 {
			total += c.Sizes[store] * int64(len(kvcache.Needed(k, store, n)))
		}
	}
	return total
}

// Predict returns the predicted time of loading so many bytes.
func (c *Cache) Predict(bytes int64) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Duration(float64(bytes) / c.reads.now * float64(time.Second))
}

// learn takes a load or a write into a rate.
func (c *Cache) learn(r *rate, bytes int64, took time.Duration) {
	const minimum = 1 << 20 // smaller ones measure the latency of the disk
	if bytes < minimum || took <= 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	now := float64(bytes) / took.Seconds()
	if !r.measured {
		*r = rate{now, true}
	}
	r.now += (now - r.now) / 4
}
