package engine

import (
	"context"
	"crypto/rand"
	"slices"
	"time"

	"sandwich/runtime/api"
	"sandwich/runtime/kvcache"
	"sandwich/runtime/prefix"
)

// flushTime bounds how long Close waits for prefixes that are being stored. Tests raise it, because
// disks may be slow.
var flushTime = 2 * time.Second

// openPrefixes starts the prefix store. A model that reads whole texts has no prefixes.
func (e *Engine) openPrefixes(o *Options) {
	a, p := e.runner.Assembly(), &e.stored
	if o.Prefixes.Store == nil || a.Model.Pooled() || a.Model.WholeText() {
		return
	}
	host := ""
	if o.Profile != nil {
		host = o.Profile.Fingerprint()
	}
	options := prefix.Options{Store: o.Prefixes.Store, Identity: a.Identity(host), Model: o.Prefixes.Model,
		Portable: a.Plan.Exact(), Parts: a.BlockParts, Cached: cachedBlocks{e},
		Compute: func(tokens int) time.Duration {
			e.mu.Lock()
			defer e.mu.Unlock()
			took, _ := e.prefill(0, tokens)
			return took
		}}
	for i := range a.Stores {
		size := 0
		for _, part := range a.BlockParts(i, 0) {
			size += len(part)
		}
		options.Kinds, options.Sizes = append(options.Kinds, a.Stores[i].Kind), append(options.Sizes, int64(size))
	}
	p.ctx, p.stop = context.WithCancel(context.Background())
	p.cache, p.always = prefix.New(options), o.Prefixes.Always
}

// close stops loads and writes, which use memory of the runner.
func (p *storedPrefixes) close() {
	if p.cache == nil {
		return
	}
	p.stop()
	p.loads.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), flushTime)
	defer cancel()
	_ = p.cache.Flush(ctx) // what is not stored by then is computed again
	p.cache.Close()
}

// Prefixes returns the prefix store, or nil if there is none.
func (e *Engine) Prefixes() *prefix.Cache { return e.stored.cache }

// cachedBlocks is the prefix.Cached of an engine.
type cachedBlocks struct{ e *Engine }

func (c cachedBlocks) Pin(store int, k *kvcache.Key) (kvcache.BlockID, bool) {
	c.e.mu.Lock()
	defer c.e.mu.Unlock()
	return c.e.sched.Pin(store, k)
}

func (c cachedBlocks) Unpin(store int, id kvcache.BlockID) {
	c.e.mu.Lock()
	defer c.e.mu.Unlock()
	c.e.sched.Unpin(store, id)
	c.e.poke() // a request may wait for the block
}

func (c cachedBlocks) Has(store int, k *kvcache.Key) bool {
	c.e.mu.Lock()
	defer c.e.mu.Unlock()
	return c.e.sched.Has(store, k)
}

// Settle waits until the scheduler has seen the ends of forwards, which index the blocks that they
// computed: a client may have the first token of a prompt before.
func (c cachedBlocks) Settle(ctx context.Context) {
	const again = time.Millisecond
	for c.pending() && ctx.Err() == nil {
		select {
		case <-time.After(again):
		case <-ctx.Done():
		case <-c.e.ended:
			return
		}
	}
}

func (c cachedBlocks) pending() bool {
	c.e.mu.Lock()
	defer c.e.mu.Unlock()
	return c.e.driver.Pending()
}

// findStored returns the part of a prompt that is on disk.
func (e *Engine) findStored(ctx context.Context, req *api.Request) prefix.Hit {
	if e.stored.cache == nil || req.OfPrompt {
		return prefix.Hit{}
	}
	if u := e.stored.cache.FindUnchecked(req.Prompt); u != nil {
		e.checkImported(ctx, req, u)
	}
	return e.stored.cache.Find(req.Salt, req.Prompt)
}

// checkImported computes the last block of an imported prefix and compares it with the stored one.
// The blocks before it are loaded under a salt that no other request has. Concurrent requests with
// the same prefix wait for one comparison. A prefix whose comparison fails for want of memory is
// not compared again by this engine.
func (e *Engine) checkImported(ctx context.Context, req *api.Request, u *prefix.Unchecked) {
	done := make(chan struct{})
	if running, ok := e.stored.checks.LoadOrStore(u.Last(), done); ok {
		select {
		case <-running.(chan struct{}):
		case <-ctx.Done():
		}
		return
	}
	again := true
	defer func() {
		if again {
			e.stored.checks.Delete(u.Last())
		}
		close(done)
	}()
	check := api.Request{Prompt: slices.Clone(u.Prompt), PromptOnly: true, Class: req.Class, Priority: req.Priority}
	_, _ = rand.Read(check.Salt[:]) // never fails
	limit, err := e.admissible(&check)
	if err != nil {
		return
	}
	j := &job{req: &check, limit: limit, hit: u.Before, noted: true}
	if _, err := e.process(ctx, j, func(api.Token) error { return nil }); err == nil {
		again = e.stored.cache.Compare(u, check.Salt)
	}
}

// notePrompt passes a prompt that is computed to the prefix store, once.
func (e *Engine) notePrompt(j *job) {
	if e.stored.cache == nil || j.noted || j.req.OfPrompt {
		return
	}
	j.noted = true
	e.stored.cache.Note(prefix.Text{Salt: j.req.Salt, Prompt: j.req.Prompt, Ends: e.ends(j.req.Prompt),
		Marks: j.req.Marks, Whole: j.req.Keep})
}
