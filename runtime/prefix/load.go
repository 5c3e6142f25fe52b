package prefix

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"sandwich/runtime/kvcache"
)

// readers is the number of objects that a load reads at a time. While some readers check and copy
// content, the others keep the disk busy.
const readers = 8

// Load reads the blocks of a hit into the given pieces of a sequence, and calls progress, possibly
// from several goroutines at once, with the number of pieces that are read. On an error the blocks
// may hold anything. When ctx ends, Load stops soon with its error.
func (c *Cache) Load(ctx context.Context, h Hit, pieces []kvcache.Piece, progress func(done int)) error {
	began := time.Now()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(c.ctx, func() { cancel(context.Canceled) })()
	var next, done, read atomic.Int64
	var group sync.WaitGroup
	for range min(readers, len(pieces)) {
		group.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(pieces) && ctx.Err() == nil; i = int(next.Add(1)) - 1 {
				n, err := c.loadPiece(ctx, h, pieces[i])
				if err != nil {
					cancel(err)
					return
				}
				read.Add(n)
				progress(int(done.Add(1)))
			}
		})
	}
	group.Wait()
	if ctx.Err() != nil {
		c.counts.failed.Add(1)
		return context.Cause(ctx)
	}
	took := time.Since(began)
	c.learn(&c.reads, read.Load(), took)
	c.counts.nanos.Add(int64(took))
	c.touch(h.keys, pieces)
	return nil
}

// loadPiece reads the object of a piece and returns its size.
func (c *Cache) loadPiece(ctx context.Context, h Hit, p kvcache.Piece) (n int64, err error) {
	if n = c.Sizes[p.Store]; n == 0 {
		return 0, nil
	}
	_, err = c.Store.Read(ctx, c.name(p, h.keys), c.Parts(p.Store, p.ID))
	return n, err
}

// touch marks objects as used, the last ones of a text first: the beginning of a text, which more
// texts share, is evicted after its end.
func (c *Cache) touch(keys []kvcache.Key, pieces []kvcache.Piece) {
	sorted := slices.Clone(pieces)
	slices.SortFunc(sorted, func(a, b kvcache.Piece) int { return b.Block - a.Block })
	for _, p := range sorted {
		if c.Sizes[p.Store] > 0 {
			c.Store.Touch(c.name(p, keys))
		}
	}
}

// Loaded counts tokens that were loaded instead of computed.
func (c *Cache) Loaded(tokens int) { c.counts.tokens.Add(int64(tokens)) }
