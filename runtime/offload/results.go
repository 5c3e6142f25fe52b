package offload

import (
	"fmt"
	"slices"

	"sandwich/runtime/kvcache"
	"sandwich/runtime/model"
)

// finish reads the logits and records the positions that both caches hold.
func (f *forward) finish() error {
	f.mirror.wrote(f.batch.Spans)
	if len(f.batch.LogitRows) == 0 {
		return f.checkKV()
	}
	stride := f.strides[model.BufLogits]
	f.logits = slices.Grow(f.logits[:0], len(f.batch.LogitRows)*stride)[:len(f.batch.LogitRows)*stride]
	if err := f.dev.Read(f.set.acts[model.BufLogits].Buffer, 0, bytesOf(f.logits)); err != nil {
		return err
	}
	for i := range f.batch.LogitRows {
		if !finite(f.Logits(i)) {
			return fmt.Errorf("%w: the logits are not finite", ErrResult)
		}
	}
	return f.checkKV()
}

// checkKV returns ErrResult if the last row of a segment has keys or values that are not finite.
func (f *forward) checkKV() error {
	for i := range f.set.in.stores {
		for _, g := range f.set.in.stores[i].list {
			for layer, store := range f.layers.Of {
				if store != i || !f.layers.Keeps(layer) {
					continue
				}
				if at := (g.Pos + g.N - 1) % kvcache.BlockTokens; !f.assembly.KV.Finite(layer, g.Block, at) {
					return fmt.Errorf("%w: layer %d has keys or values that are not finite", ErrResult, layer)
				}
			}
		}
	}
	return nil
}

func finite(x []float32) bool {
	for _, v := range x {
		if v-v != 0 {
			return false
		}
	}
	return true
}
