package engine

import (
	"runtime"
	"testing"

	"sandwich/microkernel"
	"sandwich/runtime/api"
	"sandwich/runtime/gguf"
	"sandwich/runtime/pool"
)

// TestDecodeAllocatesNothing checks that planning, the forward, sampling and the delivery of the
// tokens of a decode batch do not allocate on the Go heap, greedy or sampled, with and without
// experts.
func TestDecodeAllocatesNothing(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates; run without -race")
	}
	t.Run("dense", func(t *testing.T) { checkAllocations(t, tinyOptions(t)) })
	t.Run("q8_0 cache", func(t *testing.T) {
		o := optionsFor(t, smallModel(t, "qwen3", gguf.Q8_0))
		o.Plan.KV = microkernel.KVQ8
		checkAllocations(t, o)
	})
	t.Run("ranks", func(t *testing.T) { checkAllocations(t, ranksOptions(t, smallModel(t, "qwen3", gguf.Q8_0), 1, 1)) })
	t.Run("experts", func(t *testing.T) { checkAllocations(t, optionsFor(t, smallModel(t, "qwen3moe", gguf.Q8_0))) })
}

func checkAllocations(t *testing.T, o Options) {
	o.Context = 1024
	e := byHand(t, o)
	e.runner.Lead(func(l *pool.Leader) {
		var jobs []*job
		for i := range o.Parallel {
			req := api.Request{Prompt: tinyPrompt(uint64(i), 10), IgnoreEOS: true}
			if i%2 == 1 {
				req.Sampling = api.Sampling{Temperature: 1, TopK: 40, TopP: 0.9, MinP: 0.01, Seed: 3}
			}
			jobs = append(jobs, e.enter(t, req))
		}
		batch := func() {
			e.forward(l)
			for _, j := range jobs {
				j.out.take()
			}
		}
		for range 600 { // tables, queues and mailboxes have grown to their sizes
			batch()
		}
		const steps = 100
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range steps {
			batch()
		}
		runtime.ReadMemStats(&after)
		if n := after.Mallocs - before.Mallocs; n > steps/10 { // the token lists of the requests double now and then
			t.Errorf("%d allocations in %d decode batches of %d requests", n, steps, len(jobs))
		}
		if st := e.counts; st.Decodes < 600 {
			t.Errorf("only %d decode batches ran", st.Decodes)
		}
	})
}
