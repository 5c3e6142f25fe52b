package prefix

import (
	"errors"
	"slices"
	"sync"
	"time"

	"sandwich/runtime/kvcache"
	"sandwich/runtime/kvcache/disk"
)

// Limits of the writer.
const (
	maxJobs = 16      // prefixes that wait; more are dropped
	maxSeen = 1 << 16 // keys of each of the two generations of seen
	maxEnds = 4       // ends of messages at which states are written, the last ones of a prefix
)

// job is a prefix to write, or the end of those that Flush waits for.
type job struct {
	written chan struct{} // of Flush: closed when all jobs before this one are done; else nil

	salt   kvcache.Salt
	tokens []int32
	keys   []kvcache.Key
	ends   []int // positions at which others may branch
	marks  []int // positions at which others are likely to branch
}

// Text is a prompt that was computed. Positions count tokens.
type Text struct {
	Salt   kvcache.Salt
	Prompt []int32
	Ends   []int // positions at which other prompts may branch, ascending
	Marks  []int // positions up to which the client expects to send the prompt again, ascending
	Whole  bool  // write all of the prompt
}

// Note records a prompt that was computed, and writes in the background the part of it that an
// earlier prompt had as well, the part up to its last mark, or all of it. The blocks must stay in
// the cache until they are written, or they are left out. Note keeps the slices of t, which must
// not change.
func (c *Cache) Note(t Text) {
	keys := kvcache.Keys(t.Salt, t.Prompt)
	n := c.seen.add(keys)
	if len(t.Marks) > 0 {
		n = max(n, min(t.Marks[len(t.Marks)-1]/kvcache.BlockTokens, len(keys)))
	}
	if t.Whole {
		n = len(keys)
	}
	if n == 0 || !c.Store.Writable() {
		return
	}
	j := job{salt: t.Salt, tokens: t.Prompt[:n*kvcache.BlockTokens], keys: keys[:n], ends: t.Ends, marks: t.Marks}
	select {
	case c.jobs <- j:
	default:
		c.counts.dropped.Add(1)
	}
}

// write writes prefixes until Close.
func (c *Cache) write() {
	defer close(c.done)
	var buf []byte
	for {
		select {
		case <-c.ctx.Done():
			return
		case j := <-c.jobs:
			switch {
			case c.ctx.Err() != nil:
				return
			case j.written != nil:
				close(j.written)
			default:
				buf = c.writeJob(&j, buf)
			}
		}
	}
}

// writeJob writes the blocks of a prefix that are not on disk: those of stores that keep all
// positions, and what the other stores need at the end of the prefix and at ends of messages. It
// returns buf, possibly grown.
func (c *Cache) writeJob(j *job, buf []byte) []byte {
	c.Cached.Settle(c.ctx)
	var pieces []kvcache.Piece
	for store, k := range c.Kinds {
		if k.Most() == kvcache.All {
			pieces = append(pieces, kvcache.Needed(k, store, len(j.tokens))...)
		}
	}
	slices.SortStableFunc(pieces, func(a, b kvcache.Piece) int { return a.Block - b.Block })
	pieces = append(pieces, c.resumable(j)...)
	for i, p := range pieces {
		var err error
		if buf, err = c.writePiece(j, p, buf); err != nil {
			pieces = pieces[:i]
			break
		}
	}
	c.touch(j.keys, pieces)
	return buf
}

// resumable returns what stores that do not keep all positions need to resume near the end of a
// prefix, near marks and the last ends of messages in it and at the distance of interval, as far as
// the cache or the disk has it.
func (c *Cache) resumable(j *job) (pieces []kvcache.Piece) {
	bounded := func(k kvcache.Kind) bool { return k.Most() != kvcache.All }
	if !slices.ContainsFunc(c.Kinds, bounded) {
		return nil
	}
	wanted := []int{len(j.keys)}
	for _, mark := range j.marks {
		if n := mark / kvcache.BlockTokens; n > 0 && n < len(j.keys) {
			wanted = append(wanted, n)
		}
	}
	limit := len(wanted) + maxEnds
	for _, end := range slices.Backward(j.ends) {
		if n := end / kvcache.BlockTokens; n > 0 && n < len(j.keys) && len(wanted) < limit {
			wanted = append(wanted, n)
		}
	}
	has := func(p kvcache.Piece) bool {
		return c.Cached.Has(p.Store, &j.keys[p.Block]) || c.Store.Has(c.name(p, j.keys))
	}
	here := map[int]bool{}
	for _, n := range wanted {
		for n > 0 && !here[n] && !c.bounded(n, has) {
			n--
		}
		here[n] = n > 0
	}
	distance := c.interval(len(j.keys))
	for n := distance; n < len(j.keys); n += distance {
		here[n] = here[n] || c.bounded(n, has)
	}
	for n, found := range here {
		if !found {
			continue
		}
		for store, k := range c.Kinds {
			if bounded(k) {
				pieces = append(pieces, kvcache.Needed(k, store, n*kvcache.BlockTokens)...)
			}
		}
	}
	return pieces
}

// errGone reports a block that is no longer cached.
var errGone = errors.New("the block is no longer cached")

// writePiece copies a block to buf and writes it, unless it is on disk.
func (c *Cache) writePiece(j *job, p kvcache.Piece, buf []byte) ([]byte, error) {
	if c.Sizes[p.Store] == 0 || c.Store.Has(c.name(p, j.keys)) {
		return buf, c.ctx.Err()
	}
	id, ok := c.Cached.Pin(p.Store, &j.keys[p.Block])
	if !ok {
		if c.Kinds[p.Store].Most() != kvcache.All {
			return buf, nil // the rest is still of use
		}
		return buf, errGone
	}
	buf = buf[:0]
	for _, part := range c.Parts(p.Store, id) {
		buf = append(buf, part...)
	}
	c.Cached.Unpin(p.Store, id)
	info := disk.Info{Model: c.Model, Identity: c.Identity, Store: c.Kinds[p.Store].Name(), Block: p.Block,
		Key: j.keys[p.Block], Parent: j.salt, Tokens: j.tokens[p.Block*kvcache.BlockTokens:][:kvcache.BlockTokens],
		Public: j.salt == Public, Portable: c.Portable}
	if p.Block > 0 {
		info.Parent = j.keys[p.Block-1]
	}
	began := time.Now()
	err := c.Store.Write(c.ctx, info, buf)
	if err == nil {
		c.learn(&c.writes, int64(len(buf)), time.Since(began))
	}
	return buf, err
}

// seen remembers the keys of blocks of recent prompts. The zero value is empty. Its methods may be
// called concurrently.
type seen struct {
	mu       sync.Mutex
	now, old map[kvcache.Key]struct{}
}

// add adds the keys of a prompt and returns how many of the first ones were there before.
func (s *seen) add(keys []kvcache.Key) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	again := true
	for _, k := range keys {
		_, a := s.now[k]
		_, b := s.old[k]
		if again = again && (a || b); again {
			n++
		}
		if len(s.now) >= maxSeen || s.now == nil {
			s.now, s.old = map[kvcache.Key]struct{}{}, s.now
		}
		s.now[k] = struct{}{}
	}
	return n
}
