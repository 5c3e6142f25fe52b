package engine

import (
	"context"
	"slices"
	"sync"
	"time"

	"sandwich/runtime/kvcache"
	"sandwich/runtime/kvcache/disk"
	"sandwich/runtime/prefix"
	"sandwich/runtime/sched"
)

// PrefixOptions configures the prefix store of an engine.
type PrefixOptions struct {
	Store *disk.Store // nil: prefixes are not stored
	Model string      // name of the model, for lists
}

// storedPrefixes is the prefix store of an engine and the loads from it.
type storedPrefixes struct {
	cache *prefix.Cache // nil: none
	ctx   context.Context
	stop  context.CancelFunc
	loads sync.WaitGroup
	// always loads what is stored without a comparison of predicted times, for tests.
	always bool
}

// flushTime bounds how long Close waits for prefixes that are being stored.
const flushTime = 2 * time.Second

// openPrefixes starts the prefix store. A model that reads whole texts has no prefixes.
func (e *Engine) openPrefixes(o *Options) {
	a, p := e.runner.assembly, &e.stored
	if o.Prefixes.Store == nil || a.Model.Pooled() || a.Model.WholeText() {
		return
	}
	host := ""
	if o.Profile != nil {
		host = o.Profile.Fingerprint()
	}
	options := prefix.Options{Store: o.Prefixes.Store, Identity: a.Identity(host), Model: o.Prefixes.Model,
		Portable: a.Plan.Exact(), Parts: a.BlockParts, Cached: cachedBlocks{e}}
	for i := range a.Stores {
		size := 0
		for _, part := range a.BlockParts(i, 0) {
			size += len(part)
		}
		options.Kinds, options.Sizes = append(options.Kinds, a.Stores[i].Kind), append(options.Sizes, int64(size))
	}
	p.ctx, p.stop = context.WithCancel(context.Background())
	p.cache = prefix.New(options)
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

// findStored looks up the prompt of a job on disk, before the job is submitted.
func (e *Engine) findStored(j *job) {
	if e.stored.cache != nil && !j.req.OfPrompt {
		j.hit = e.stored.cache.Find(j.req.Salt, j.req.Prompt)
	}
}

// worthLoading returns up to which position the prompt of a job is to be loaded: 0 if the cache has
// as much of it, or if computing is predicted to be faster. It is called with e.mu held.
func (e *Engine) worthLoading(j *job) int {
	n := j.hit.Positions
	if n == 0 {
		return 0
	}
	at := e.sched.Cached(j.req.Salt, j.req.Prompt)
	if n <= at {
		return 0
	}
	if computing, _ := e.prefill(at, n); e.loadTime(j, at) >= computing && !e.stored.always {
		return 0
	}
	j.storedOnArrival = n
	return n
}

// loadTime predicts the time of loading the stored prefix of a job from a position on.
func (e *Engine) loadTime(j *job, at int) time.Duration {
	n := int64(j.hit.Positions)
	return e.stored.cache.Predict(j.hit.Bytes * max(0, n-int64(at)) / n)
}

// startLoad fills the blocks of a request in a goroutine of its own. It is called with e.mu held.
func (e *Engine) startLoad(a *sched.Action) {
	id, at, n, pieces := a.ID, a.Pos, a.N, slices.Clone(a.Pieces)
	ctx, cancel := context.WithCancel(e.stored.ctx)
	j := e.jobs[id]
	if j == nil { // it ended in the same step
		cancel()
		j = &job{}
	}
	j.stopLoad = cancel
	e.stored.loads.Go(func() {
		defer cancel()
		err := e.stored.cache.Load(ctx, j.hit, pieces, func(done int) {
			j.out.report(at + (n-at)*done/len(pieces))
		})
		e.endLoad(id, pieces, err)
		if err == nil {
			e.stored.cache.Loaded(n - at)
		}
	})
}

// endLoad reports the end of a load to the scheduler.
func (e *Engine) endLoad(id sched.ID, pieces []kvcache.Piece, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closing {
		return
	}
	kind := sched.Loaded
	if err != nil {
		kind = sched.LoadFailed
	}
	if d := e.onDevice.device; d != nil {
		for _, p := range pieces {
			d.Invalidate(p.Store, p.ID)
		}
	}
	e.driver.Post(sched.Event{Kind: kind, ID: id})
	e.poke()
}

// notePrompt passes a prompt that is computed to the prefix store, once.
func (e *Engine) notePrompt(j *job) {
	if e.stored.cache == nil || j.noted || j.req.OfPrompt {
		return
	}
	j.noted = true
	e.stored.cache.Compare(j.hit, j.req.Salt, j.req.Prompt)
	e.stored.cache.Note(j.req.Salt, j.req.Prompt, e.ends(j.req.Prompt), j.req.Keep)
}
