package offload

import (
	"encoding/binary"
	"fmt"
	"slices"

	"sandwich/runtime/device"
	"sandwich/runtime/kvcache"
	"sandwich/runtime/model"
)

// finish reads the logits and records the positions that both caches hold.
func (f *forward) finish() error {
	f.mirror.wrote(f.batch.Spans)
	if len(f.batch.LogitRows) == 0 {
		return nil
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
	return nil
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

// checkKV returns ErrResult if the ops [from, to) have written keys or values to the last row of a
// segment that are not finite.
func (f *forward) checkKV(from, to int) error {
	for i := from; i < to; i++ {
		op := &f.model.Ops[i]
		if op.Kind != model.OpRotate {
			continue
		}
		for _, g := range f.set.in.stores[f.layers.Of[op.Layer]].list {
			if at := (g.Pos + g.N - 1) % kvcache.BlockTokens; !f.assembly.KV.Finite(op.Layer, g.Block, at) {
				return fmt.Errorf("%w: layer %d has keys or values that are not finite", ErrResult, op.Layer)
			}
		}
	}
	return nil
}

// finite reports whether no number is infinite or NaN.
func finite(x []float32) bool {
	// Adding 1 to an exponent of ones sets the bit above it. Words have two numbers.
	const exponents, ones, carries = 0x7F800000_7F800000, 0x00800000_00800000, 0x80000000_80000000
	var a, b, c, d uint64
	data := bytesOf(x)
	for ; len(data) >= 32; data = data[32:] {
		a |= binary.NativeEndian.Uint64(data)&exponents + ones
		b |= binary.NativeEndian.Uint64(data[8:])&exponents + ones
		c |= binary.NativeEndian.Uint64(data[16:])&exponents + ones
		d |= binary.NativeEndian.Uint64(data[24:])&exponents + ones
	}
	for ; len(data) > 0; data = data[4:] {
		a |= uint64(binary.NativeEndian.Uint32(data))&exponents + ones
	}
	return (a|b|c|d)&carries == 0
}
