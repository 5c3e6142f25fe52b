package exec

import (
	"slices"
	"testing"

	"sandwich/runtime/kvcache"
)

// TestPrewarm checks that a forward lays out a batch of one row for the executor that follows,
// leaves the forward of that executor alone, and that the results are the same as without.
func TestPrewarm(t *testing.T) {
	o := smallOptions(t, 1)
	o.Unpinned = true
	a, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	prefill, err := a.Compile(&o.Plan.Prefill, a.Workers)
	if err != nil {
		t.Fatal(err)
	}
	defer prefill.Close()
	decode, err := a.Compile(&o.Plan.Decode, a.Workers)
	if err != nil {
		t.Fatal(err)
	}
	defer decode.Close()
	run := func(e *Executor, seq *kvcache.Sequence, cache *kvcache.Cache, tokens ...int32) []float32 {
		t.Helper()
		b := &kvcache.Batch{Tokens: tokens, LogitRows: []int32{int32(len(tokens) - 1)}}
		cache.Cover(seq, seq.Len()+len(tokens))
		b.AddSpan(seq, kvcache.Span{Rows: len(tokens), Pos: seq.Len()})
		if _, err := e.Run(a.Workers.Pool, b, 0, nil); err != nil {
			t.Fatal(err)
		}
		cache.Advance(seq, len(tokens))
		return slices.Clone(e.Logits(0))
	}
	both := func() (out []float32) {
		cache := a.NewCache()
		seq := cache.Open(kvcache.Salt{})
		if !cache.Reserve(seq, 8) {
			t.Fatal("no blocks")
		}
		out = run(prefill, seq, cache, 5, 6, 7)
		return append(out, run(decode, seq, cache, 9)...)
	}
	want := both()
	prefill.Prewarm(decode)
	if got := both(); !slices.Equal(got, want) {
		t.Error("a prewarmed executor computes other logits")
	}
	if len(decode.prewarmBatch.Spans) != 1 || decode.prewarmBatch.Rows() != 1 {
		t.Errorf("the batch for prewarming is %+v; want one row", decode.prewarmBatch)
	}
	prefill.Prewarm(nil)
	if got := both(); !slices.Equal(got, want) {
		t.Error("without a successor an executor computes other logits")
	}
}
