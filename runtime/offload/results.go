package offload

import (
	"fmt"
	"math"
	"slices"

	"sandwich/runtime/device"
	"sandwich/runtime/kvcache"
	"sandwich/runtime/model"
)

// finish reads the logits and records the positions that both caches hold.
func (f *forward) finish() error {
	f.mirror.wrote(f.batch.Spans)
	if len(f.batch.LogitRows) == 0 {
		return f.checkKV()
	}
	n := len(f.batch.LogitRows) * f.strides[model.BufLogits]
	f.logits = slices.Grow(f.logits[:0], n)[:n]
	if f.stagedLogits() > 0 {
		copy(bytesOf(f.logits), f.set.logits.Buffer.Host())
	} else if err := f.dev.Read(f.set.acts[model.BufLogits].Buffer, 0, bytesOf(f.logits)); err != nil {
		return err
	}
	for i := range f.batch.LogitRows {
		if !finite(f.Logits(i)) {
			return fmt.Errorf("%w: the logits are not finite", ErrResult)
		}
	}
	return f.checkKV()
}

// mostStagedLogits limits the logits that the last segment copies to host-visible memory, in bytes.
const mostStagedLogits = 16 << 20

// stagedLogits returns the bytes of logits that the last segment copies to host-visible memory, so
// that no other submission is needed to read them; 0: none.
func (f *forward) stagedLogits() uint64 {
	n := uint64(4 * len(f.batch.LogitRows) * f.strides[model.BufLogits])
	if n > mostStagedLogits || f.blocks.host == device.DeviceLocal {
		return 0
	}
	return n
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

// finite reports whether no number is infinite or NaN.
func finite(x []float32) bool {
	// Adding 1 to an exponent of ones sets the bit above it. Words have two numbers.
	const exponents, ones, carries = 0x7F800000_7F800000, 0x00800000_00800000, 0x80000000_80000000
	var carried uint64
	if len(x)%2 == 1 {
		carried = uint64(math.Float32bits(x[len(x)-1]))&exponents + ones
	}
	for i := 0; i+1 < len(x); i += 2 {
		two := uint64(math.Float32bits(x[i])) | uint64(math.Float32bits(x[i+1]))<<32
		carried |= two&exponents + ones
	}
	return carried&carries == 0
}
