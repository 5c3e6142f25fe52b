package measure

import (
	"context"
	"fmt"
	"time"

	"sandwich/runtime/engine/forward"
	"sandwich/runtime/kvcache"
	"sandwich/runtime/pool"
)

// Forward is one forward to predict and to measure: Rows of a prompt, or one token of each of Rows
// sequences, after Context positions.
type Forward struct {
	Prefill bool
	Rows    int
	Context int
}

// Name describes the forward.
func (f Forward) Name() string {
	if f.Prefill {
		return fmt.Sprintf("prompt of %d after %d", f.Rows, f.Context)
	}
	return fmt.Sprintf("batch of %d after %d", f.Rows, f.Context)
}

// ForwardPositions returns the maximum number of KV positions of a forward, over all sequences.
func ForwardPositions(list []Forward) (largest int) {
	for _, f := range list {
		n := f.Context + f.Rows
		if !f.Prefill {
			n = f.Rows * kvcache.BlocksFor(f.Context+1) * kvcache.BlockTokens
		}
		largest = max(largest, n)
	}
	return largest
}

// ForwardLogits returns the maximum number of rows with logits of a forward.
func ForwardLogits(list []Forward) (largest int) {
	for _, f := range list {
		if largest = max(largest, 1); !f.Prefill {
			largest = max(largest, f.Rows)
		}
	}
	return largest
}

// batch returns the batch of the forward, after positions with arbitrary contents: the duration of
// attention does not depend on them.
func (f Forward) batch(r *forward.Runner) (*kvcache.Batch, error) {
	cache, b := r.NewCache(), &kvcache.Batch{Prefill: f.Prefill}
	for i := range f.Rows {
		b.Tokens = append(b.Tokens, int32(i*31%r.Model.Dims.Vocab))
	}
	sequences, each := f.Rows, 1
	if f.Prefill {
		sequences, each = 1, f.Rows
	}
	for i := range sequences {
		seq := cache.Open(kvcache.Salt{})
		if !cache.Reserve(seq, f.Context+each) {
			return nil, fmt.Errorf("%d sequences of %d positions do not fit the KV cache", sequences, f.Context+each)
		}
		cache.Pass(seq, f.Context, r.Plan.Chunk)
		cache.Cover(seq, f.Context+each)
		b.AddSpan(seq, kvcache.Span{Seq: i, Row: i * each, Rows: each, Pos: f.Context})
		if !f.Prefill {
			b.LogitRows = append(b.LogitRows, int32(i))
		}
	}
	if f.Prefill {
		b.LogitRows = append(b.LogitRows, int32(f.Rows-1))
	}
	return b, nil
}

// TimeForwards runs forwards interleaved, each reps times after a warm-up, and returns the seconds
// of each. The runner must hold ForwardPositions and ForwardLogits. step is called after every
// measured forward. TimeForwards must be called inside Lead.
func TimeForwards(ctx context.Context, r *forward.Runner, l *pool.Leader, list []Forward, reps int,
	step func()) ([][]float64, error) {
	batches := make([]*kvcache.Batch, len(list))
	for i, f := range list {
		var err error
		if batches[i], err = f.batch(r); err != nil {
			return nil, err
		}
	}
	out := make([][]float64, len(list))
	for range reps {
		for i, b := range batches {
			if i == 0 || list[i].Prefill != list[i-1].Prefill { // exclude the switch to a phase
				if _, err := r.Forward(l, b, 0, nil); err != nil {
					return nil, err
				}
			}
			began := time.Now()
			if _, err := r.Forward(l, b, 0, nil); err != nil {
				return nil, err
			}
			out[i] = append(out[i], time.Since(began).Seconds())
			if step(); ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
		}
	}
	return out, nil
}
