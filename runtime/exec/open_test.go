package exec

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"sandwich/runtime/gguf"
	"sandwich/runtime/mem"
	"sandwich/runtime/model/modelfile"
	"sandwich/runtime/pool"
)

// smallOptions returns options that open smallFile for one prompt on unpinned workers.
func smallOptions(t *testing.T, ranks int) Options {
	t.Helper()
	file, plan := smallFile(t, gguf.Q8_0, false, ranks)
	return Options{File: file, Plan: plan, Blocks: 1, LogitRows: 1, Unpinned: true}
}

// TestOpenEndsWithItsContext checks that when the context ends during packing, each worker packs at
// most the chunk at hand, and that nothing stays allocated.
func TestOpenEndsWithItsContext(t *testing.T) {
	reason := errors.New("the program is to end")
	for _, ranks := range []int{1, 2} {
		o := smallOptions(t, ranks)
		workers := int64(len(o.Plan.Threads()))
		before := mem.Total()
		ctx, end := context.WithCancelCause(t.Context())
		var pieces atomic.Int64
		o.Progress = func(int64, int64) {
			pieces.Add(1)
			end(reason)
		}
		a, err := Open(ctx, o)
		if err == nil {
			a.Close()
		}
		if !errors.Is(err, reason) {
			t.Errorf("%d ranks: %v, want the cause of the context", ranks, err)
		}
		if n := pieces.Load(); n < 1 || n > workers {
			t.Errorf("%d ranks: %d pieces were packed by %d workers", ranks, n, workers)
		}
		if held := mem.Total() - before; held != 0 {
			t.Errorf("%d ranks: %d bytes are still allocated", ranks, held)
		}
	}
}

// TestOpenOnGivenWorkers checks that an assembly over workers of the caller leaves them running,
// and compiles for them and for others over the same PUs.
func TestOpenOnGivenWorkers(t *testing.T) {
	for _, ranks := range []int{1, 2} {
		o := smallOptions(t, ranks)
		w := PlanWorkers(o.Plan)
		w.Unpinned = true
		workers, err := NewWorkers(w)
		if err != nil {
			t.Fatal(err)
		}
		defer workers.Close()
		o.Workers = workers
		a, err := Open(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		free, err := workers.Unbound()
		if err != nil {
			t.Fatal(err)
		}
		for _, on := range []*Workers{workers, free} {
			e, err := a.Compile(&o.Plan.Decode, on)
			if err != nil {
				t.Fatal(err)
			}
			if err := e.Close(); err != nil {
				t.Error(err)
			}
		}
		free.Close()
		if err := a.Close(); err != nil {
			t.Error(err)
		}
		if n := len(workers.Ranks()); n != ranks {
			t.Errorf("%d ranks of workers, want %d", n, ranks)
		}
		if _, err := workers.On([]int{4711}); err == nil || !strings.Contains(err.Error(), "PU 4711") {
			t.Errorf("a PU without a worker: %v", err)
		}
		workers.Pool.Run(func(worker *pool.Worker) { worker.Barrier() }) // panics on a closed pool
	}
}

// TestOpenRefusesMemory checks that sizes that do not fit are refused with numbers before loading.
func TestOpenRefusesMemory(t *testing.T) {
	if mem.Available() <= 0 {
		t.Skip("the available memory is unknown: needs Linux with /proc mounted")
	}
	for blocks, want := range map[int]string{0: "no machine has", 1 << 30: "is free for them",
		1 << 60: "no machine has"} {
		o := smallOptions(t, 1)
		o.Blocks = blocks
		o.Progress = func(int64, int64) { t.Error("weights were packed") }
		a, err := Open(t.Context(), o)
		if err == nil {
			a.Close()
		}
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "lower --ctx") {
			t.Errorf("%d blocks: %v", blocks, err)
		}
	}
}

// TestCacheFitsMemory checks that the cache takes at most half of the free memory, but at least the
// number of blocks that are required.
func TestCacheFitsMemory(t *testing.T) {
	if mem.Available() <= 0 {
		t.Skip("the available memory is unknown: needs Linux with /proc mounted")
	}
	o := smallOptions(t, 1)
	m, err := modelfile.Load(o.File)
	if err != nil {
		t.Fatal(err)
	}
	a := &Assembly{Model: m, Plan: o.Plan, Shards: divide(t, m, o.Plan), rows: 64, logits: 1}
	for _, want := range []int{9, 1 << 50, math.MaxInt} {
		o.Blocks, o.Least = want, 4
		a.Blocks, a.Stores = o.stores(a.Shards)
		if err := a.checkMemory(a.Blocks); err != nil {
			t.Fatal(err)
		}
		bytes := a.Shards.KVBytes(o.Plan.KV, a.Stores)
		if want == 9 && a.Blocks != 9 || a.Blocks < 4 || a.Blocks > want || a.Stores[0].Blocks != a.Blocks ||
			bytes > mem.Available() {
			t.Errorf("%d blocks of %d bytes for %d", a.Blocks, bytes, want)
		}
	}
	takes, refused := MemoryOf(m)
	d := m.Dims
	if per := int64(d.Layers * d.KVHeads * d.HeadDim * 4); refused != nil || takes.PerToken != per ||
		takes.Bounded != 0 {
		t.Errorf("%+v, %v; a token of a cache of f16 takes %d bytes", takes, refused, per)
	}
}

// TestOpenNamesTheFile checks that the error for a file without a tensor names the file.
func TestOpenNamesTheFile(t *testing.T) {
	o := smallOptions(t, 1)
	path := filepath.Join(t.TempDir(), "part.gguf")
	out, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	w := gguf.NewWriter(out)
	w.SetString("general.architecture", "llama")
	if err := errors.Join(w.Close(), out.Close()); err != nil {
		t.Fatal(err)
	}
	if o.File, err = gguf.Open(path); err != nil {
		t.Fatal(err)
	}
	defer o.File.Close()
	if _, _, err := o.read(); err == nil || !strings.HasPrefix(err.Error(), path+": ") {
		t.Errorf("got %v, want an error that begins with the path", err)
	}
}
