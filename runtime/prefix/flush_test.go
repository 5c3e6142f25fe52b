package prefix

import (
	"bytes"
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"sandwich/runtime/kvcache"
	"sandwich/runtime/kvcache/disk"
)

// emptyCache is a Cached without blocks. Settle waits for a value of settle, unless that is nil, or
// the end of the cache.
type emptyCache struct {
	settle chan struct{}
}

func (emptyCache) Pin(int, *kvcache.Key) (kvcache.BlockID, bool) { return 0, false }
func (emptyCache) Unpin(int, kvcache.BlockID)                    {}
func (emptyCache) Has(int, *kvcache.Key) bool                    { return false }

func (e emptyCache) Settle(ctx context.Context) {
	select {
	case <-e.settle:
	case <-ctx.Done():
	}
}

// opened returns a cache over an empty store.
func opened(t *testing.T, e emptyCache) *Cache {
	t.Helper()
	s, err := disk.Open(t.TempDir(), disk.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return New(Options{Store: s, Kinds: []kvcache.Kind{kvcache.Full{}}, Sizes: []int64{1}, Cached: e,
		Parts:   func(int, kvcache.BlockID) [][]byte { return nil },
		Compute: func(int) time.Duration { return time.Second }})
}

// text returns a prompt of one full block.
func text(first int32) Text {
	prompt := make([]int32, kvcache.BlockTokens)
	prompt[0] = first
	return Text{Prompt: prompt, Whole: true}
}

// TestFlush checks that Flush waits for the prefixes noted before it and for no others, also while
// further ones are noted.
func TestFlush(t *testing.T) {
	settle := make(chan struct{})
	c := opened(t, emptyCache{settle})
	defer c.Close()
	if err := c.Flush(t.Context()); err != nil {
		t.Fatalf("without prefixes: %v", err)
	}
	c.Note(text(1))
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.Flush(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("flushed before the write: %v", err)
	}
	flushed := make(chan error)
	go func() { flushed <- c.Flush(t.Context()) }()
	settle <- struct{}{}
	if err := <-flushed; err != nil {
		t.Error(err)
	}
}

// TestFlushEndsWithCache checks that Close ends a Flush whose prefixes are not written, and that
// nothing waits for them afterwards.
func TestFlushEndsWithCache(t *testing.T) {
	c := opened(t, emptyCache{make(chan struct{})}) // the writer waits until Close
	for i := range int32(maxJobs + 1) {
		c.Note(text(i))
	}
	flushed := make(chan error)
	go func() { flushed <- c.Flush(t.Context()) }()
	c.Close()
	if err := <-flushed; !errors.Is(err, context.Canceled) {
		t.Errorf("flushed: %v", err)
	}
	stacks := make([]byte, 1<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	if bytes.Contains(stacks, []byte("prefix.(*Cache).Flush")) {
		t.Errorf("a goroutine of Flush remains:\n%s", stacks)
	}
}
