package attention

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"sandwich/microkernel"
	"sandwich/runtime/exec/tp"
	"sandwich/runtime/kvcache"
	"sandwich/runtime/mem"
	"sandwich/runtime/model"
	"sandwich/runtime/pool"
)

// randomStore returns a cache of one layer with random values.
func randomStore(t *testing.T, rng *rand.Rand, elem microkernel.KVType, kvHeads, dim, blocks int) *KVStore {
	kv, err := NewKVStore(model.Dims{Layers: 1, KVHeads: kvHeads, HeadDim: dim}, elem, microkernel.AttendF32, blocks,
		mem.AnyNode)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { kv.Free() })
	x := make([]float32, kvcache.BlockTokens*dim)
	fill := func() *float32 {
		for i := range x {
			x[i] = 2*rng.Float32() - 1
		}
		return &x[0]
	}
	v := microkernel.RefVec()
	for b := range blocks {
		for h := range kvHeads {
			k, value := kv.at(0, kvcache.BlockID(b), h)
			v.StoreK(kv.of[0].layout, k, 0, fill(), kvcache.BlockTokens, dim)
			v.StoreV(kv.of[0].layout, value, 0, fill(), kvcache.BlockTokens, dim)
		}
	}
	return kv
}

// decodeSpans returns a decode batch of sequences of random lengths, up to the longest.
func decodeSpans(rng *rand.Rand, n, longest, blocks int) (spans []kvcache.Span) {
	for i := range n {
		pos := rng.IntN(longest)
		if i == 0 {
			pos = longest - 1
		}
		table := make([]kvcache.BlockID, kvcache.BlocksFor(pos+1))
		for j := range table {
			table[j] = kvcache.BlockID(rng.IntN(blocks))
		}
		spans = append(spans, kvcache.Span{Seq: i, Row: i, Rows: 1, Pos: pos, Tables: kvcache.Tables{table}})
	}
	return spans
}

// TestAttentionSplit checks that any number of workers computes the bits of one worker for a long
// context, alone and with other sequences.
func TestAttentionSplit(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	const dim, blocks = 32, 24
	longest, step := 1500, 1
	if tp.RaceEnabled {
		longest, step = 520, 4 // plain Go
	}
	isa := microkernel.Host().Best()
	for _, c := range []struct{ kvHeads, group, sequences int }{{1, 4, 1}, {3, 1, 1}, {2, 14, 1},
		{1, 2, 3}, {4, 8, 2}} {
		for i, elem := range []microkernel.KVType{microkernel.KVF16, microkernel.KVQ8, microkernel.KVQ8} {
			dot := []microkernel.AttentionDot{microkernel.AttendF32, microkernel.AttendF32, microkernel.AttendDPBUSD}[i]
			if tp.RaceEnabled && c.group*c.kvHeads > 4 || !dot.On(isa, microkernel.Host()) {
				continue
			}
			kv := randomStore(t, rng, elem, c.kvHeads, dim, blocks)
			spans := decodeSpans(rng, c.sequences, longest, blocks)
			width := c.kvHeads * c.group * dim
			q := make([]float32, c.sequences*width)
			for i := range q {
				q[i] = 2*rng.Float32() - 1
			}
			var want []float32
			for workers := 1; workers <= 9; workers += step {
				got := make([]float32, len(q))
				split := attendWith(t, isa, dot, kv, c.group, workers, spans,
					tp.Rows{Base: &q[0], Stride: width}, tp.Rows{Base: &got[0], Stride: width})
				if workers == 1 {
					want = got
				} else if !slices.Equal(got, want) {
					t.Errorf("%+v %s by %s: %d workers and one worker give different bits", c, elem, dot, workers)
				}
				if expect := workers >= 2 && c.kvHeads == 1 && c.sequences == 1; expect && !split {
					t.Errorf("%+v: one KV head is not split among %d workers", c, workers)
				}
			}
		}
	}
}

// attendWith runs attention three times with a pool of its own, like successive layers, and reports
// whether a context was split.
func attendWith(t *testing.T, isa microkernel.ISA, dot microkernel.AttentionDot, kv *KVStore, group, workers int,
	spans []kvcache.Span, q, out tp.Rows) bool {
	pus := make([]int, workers)
	p, err := pool.New(pus, pool.Options{Spin: pool.NoSpin})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	a, err := New([]microkernel.ISA{isa}, kv, Shape{Groups: []int{group}, Dot: dot}, workers, workers)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Free()
	a.Begin(spans)
	for range 3 {
		width := kv.of[0].kvHeads * group * kv.of[0].layout.HeadDim
		clear(unsafe.Slice(out.Base, len(spans)*width))
		p.Run(func(w *pool.Worker) {
			a.Run(w, 0, float32(1/math.Sqrt(float64(kv.of[0].layout.HeadDim))), q, out)
			w.Barrier()
		})
	}
	return len(a.forms[0].splits) > 0
}

// TestSplits checks that chunks cover every block of every segment once and in order and stay
// inside the memory for states.
func TestSplits(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 8))
	splits := 0
	for range 3000 {
		c := divider{team: 1 + rng.IntN(20), kvHeads: 1 + rng.IntN(8), group: 1 + rng.IntN(8), state: 64,
			max: rng.IntN(200), window: rng.IntN(2) * rng.IntN(1500)}
		spans, _ := randomSpans(rng)
		v := newView(kvcache.Full{}, 0)
		v.update(spans)
		c.divide(v.spans)
		next := make([]int, len(c.segments))
		for i := range next {
			next[i], _ = c.segments[i].blocks(c.window)
		}
		slices.SortStableFunc(c.chunks, func(a, b chunk) int { return a.from - b.from })
		for _, p := range c.chunks {
			if p.from != next[p.segment] || p.to <= p.from {
				t.Fatalf("chunk %+v begins after block %d", p, next[p.segment])
			}
			if next[p.segment] = p.to; p.split < 0 {
				continue
			}
			s := c.splits[p.split]
			from, to := c.segments[p.segment].blocks(c.window)
			if s.at+s.states > c.max || s.states != 1+to-s.first || p.from == from && p.to != s.first {
				t.Fatalf("split %+v of chunk %+v of blocks %d to %d with memory for %d", s, p, from, to, c.max)
			}
		}
		for i := range c.segments {
			if _, to := c.segments[i].blocks(c.window); next[i] != to {
				t.Fatalf("chunks end at %d of %d blocks", next[i], to)
			}
		}
		if len(c.splits) > c.maxSplits() {
			t.Fatalf("%d splits, counters for %d", len(c.splits), c.maxSplits())
		}
		splits += len(c.splits)
	}
	if splits == 0 {
		t.Error("no context was ever split")
	}
}
