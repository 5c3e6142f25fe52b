package offload

import (
	"errors"
	"math/bits"

	"sandwich/microkernel/devgen/kernels"
	"sandwich/runtime/device"
	"sandwich/runtime/kvcache"
	"sandwich/runtime/model"
)

// mostPartBytes is the size of the results of blocks above which attention of few rows reads its
// blocks one after the other.
const mostPartBytes = 256 << 20

func attentionOf(op *model.Op) kernels.Attention {
	return kernels.Attention{HeadDim: op.Heads.Dim, Rows: 8, Window: op.Attn.Window > 0, Softcap: op.Attn.Softcap > 0,
		Sinks: op.Sinks != nil}
}

// partsOf returns the kernels of an attention whose sequences have at most the given number of
// tokens in the batch, or false if they are for fewer rows.
func partsOf(op *model.Op, tokens int) (part kernels.AttentionPart, merge kernels.AttentionMerge, ok bool) {
	const mostRows = 8
	rows := tokens * (op.Heads.Q / op.Heads.KV)
	if rows > mostRows || op.Heads.Dim%16 != 0 {
		return part, merge, false
	}
	rows = powerOfTwo(rows) // so that few kernels have to be compiled
	window := op.Attn.Window > 0
	part = kernels.AttentionPart{HeadDim: op.Heads.Dim, Rows: rows, Window: window, Softcap: op.Attn.Softcap > 0}
	merge = kernels.AttentionMerge{HeadDim: op.Heads.Dim, Rows: rows, Window: window, Sinks: op.Sinks != nil}
	return part, merge, true
}

// powerOfTwo returns the least power of two that is not below n, a positive number.
func powerOfTwo(n int) int { return 1 << bits.Len(uint(n-1)) }

// visibleBlocks returns the most blocks of a store that the rows of a sequence see.
func (s *storeInputs) visibleBlocks(op *model.Op) int {
	if op.Attn.Window <= 0 {
		return s.blocks
	}
	return min(s.blocks, (op.Attn.Window+s.longest)/kvcache.BlockTokens+2)
}

// partBytes returns the size of the results of blocks of an attention op for a batch.
func partBytes(op *model.Op, k kernels.AttentionPart, s *storeInputs) uint64 {
	rows := s.sequences.n * s.visibleBlocks(op) * op.Heads.KV * k.Rows
	return uint64(4 * rows * kernels.PartWords(k.HeadDim))
}

// resizeParts makes room for the results of blocks of the batch, unless they take too much memory.
func (f *forward) resizeParts() error {
	var most uint64
	for i := range f.model.Ops {
		op := &f.model.Ops[i]
		if op.Kind != model.OpAttention || f.onCores.Has(i) {
			continue
		}
		s := &f.set.in.stores[f.layers.Of[op.Layer]]
		if part, _, ok := partsOf(op, s.longest); ok {
			most = max(most, partBytes(op, part, s))
		}
	}
	if most > mostPartBytes {
		return nil
	}
	err := f.resize(&f.set.parts, most, device.DeviceLocal)
	if errors.Is(err, device.ErrMemory) {
		return nil
	}
	return err
}

func (c *recorder) attention(op *model.Op) {
	in := &c.set.in
	s := &in.stores[c.layers.Of[op.Layer]]
	kv, head, block := c.cache(op.KVLayer)
	group := op.Heads.Q / op.Heads.KV
	push := pushes{"q_stride": c.strides[model.BufQ], "out_stride": c.strides[model.BufAtt], "group": group,
		"kv_heads": op.Heads.KV, "head_words": head, "block_words": block, "blocks": s.visibleBlocks(op),
		"scale": op.Attn.Scale, "window": op.Attn.Window, "cap": op.Attn.Softcap}
	if op.Attn.Softcap > 0 {
		push["factor"] = float32(2 * float64(op.Attn.Scale) / float64(op.Attn.Softcap))
	}
	buffers := bindings{"q": c.set.acts[model.BufQ], "out": c.set.acts[model.BufAtt], "kv": kv,
		"tables": in.at(s.tables), "sequences": in.at(s.sequences), "parts": c.set.parts}
	if op.Sinks != nil {
		buffers["sinks"] = c.mem.vectors[op.Sinks]
	}
	part, merge, ok := partsOf(op, s.longest)
	if parts := c.set.parts.Buffer; ok && parts != nil && partBytes(op, part, s) <= parts.Bytes() {
		c.launch(part, part.Grid(s.visibleBlocks(op), op.Heads.KV, s.sequences.n), buffers, push)
		c.launch(merge, merge.Grid(op.Heads.KV, s.sequences.n), buffers, push)
		return
	}
	k := attentionOf(op)
	c.launch(k, k.Grid(s.longest, group, op.Heads.KV, s.sequences.n), buffers, push)
}
