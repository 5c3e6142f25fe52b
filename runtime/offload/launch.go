package offload

import (
	"math"

	"sandwich/microkernel"
	"sandwich/microkernel/devgen/kernels"
	"sandwich/runtime/device"
	"sandwich/runtime/kvcache"
	"sandwich/runtime/model"
)

// recorder collects the steps of a segment of a forward.
type recorder struct {
	*Runner
	set   *set
	batch *kvcache.Batch
	steps []device.Step
	err   error
}

// launch adds a kernel.
func (c *recorder) launch(d description, groups [3]int, buffers []device.Slice, push ...any) {
	if c.err != nil {
		return
	}
	p, err := c.programs.of(d)
	if err != nil {
		c.err = err
		return
	}
	c.steps = append(c.steps, device.Launch{Program: p, Groups: groups, Buffers: buffers, Push: words(push)})
}

// words returns the bits of push words: int or float32.
func words(list []any) []uint32 {
	out := make([]uint32, len(list))
	for i, x := range list {
		switch x := x.(type) {
		case int:
			out[i] = uint32(x)
		case float32:
			out[i] = math.Float32bits(x)
		}
	}
	return out
}

// op adds the steps of op i.
func (c *recorder) op(i int) {
	op := &c.model.Ops[i]
	hidden := c.model.Dims.Hidden
	x, h, y := c.set.acts[model.BufX], c.set.acts[model.BufH], c.set.acts[model.BufY]
	switch op.Kind {
	case model.OpNorm:
		c.norm(h, x, op.Norm)
	case model.OpAddNorm:
		if op.Post != nil {
			c.norm(y, y, op.Post)
		}
		c.launch(addRows{}, kernels.RowGrid(hidden, c.batch.Rows()), []device.Slice{x, y}, hidden,
			c.strides[model.BufX], c.strides[model.BufY])
		if op.Norm != nil {
			c.norm(h, x, op.Norm)
		}
	case model.OpMatMul:
		c.product(op)
	case model.OpRotate:
		c.rotate(op)
		c.stageBlocks(i)
	case model.OpAttention:
		c.attention(op)
	case model.OpGather:
		c.launch(gatherRows{}, kernels.RowGrid(hidden, len(c.batch.LogitRows)),
			[]device.Slice{y, h, c.set.in.at(c.set.in.logits)}, hidden, c.strides[model.BufY], c.strides[model.BufH],
			op.Scale)
	}
}

// norm normalizes the rows of the batch. All buffers have the width of the model.
func (c *recorder) norm(to, from device.Slice, weight *model.Vector) {
	rows, stride := c.batch.Rows(), c.strides[model.BufX]
	c.launch(normRows, normRows.Grid(rows), []device.Slice{from, c.mem.vectors[weight], to}, rows,
		c.model.Dims.Hidden, stride, stride, 0, c.model.Eps)
}

// product adds the products of an op, and the quantization of their input.
func (c *recorder) product(op *model.Op) {
	rows := c.batch.Rows()
	if op.Wanted {
		rows = len(c.batch.LogitRows)
	}
	quantized := map[microkernel.Compute]bool{}
	for i, w := range op.W {
		p := c.assembly.Weights.At(0, w)
		in, stride := c.set.acts[op.In], c.strides[op.In]
		if p.Compute != microkernel.ComputeF32 {
			qStride := microkernel.ActQ8RowBytes(p.Layout.K) / 4
			if !quantized[p.Compute] {
				quantized = map[microkernel.Compute]bool{p.Compute: true} // one buffer for all paths
				c.launch(quantization(p.Compute), kernels.Norm{}.Grid(rows), []device.Slice{in, c.set.quantized}, rows,
					p.Layout.K, stride, 0, qStride, float32(0))
			}
			in, stride = c.set.quantized, qStride
		}
		if op.Act != 0 && i > 0 {
			break // the kernel of the gate computes both
		}
		g := c.Runner.product(op, i, rows)
		buffers := []device.Slice{in, c.mem.weights[w]}
		if op.Act != 0 {
			buffers = append(buffers, c.mem.weights[op.W[1]])
		}
		if b := biasOf(op, i); b != nil {
			buffers = append(buffers, c.mem.vectors[b])
		}
		out := op.Outs[i]
		c.launch(g, g.Grid(rows, p.Layout.N), append(buffers, c.set.acts[out]), rows, p.Layout.N, p.Layout.K, stride,
			p.Layout.PanelStride()/4, c.strides[out])
	}
}

// cache returns the KV cache of a layer and the words of a head's and of all heads' blocks.
func (c *recorder) cache(layer int) (kv device.Slice, head, block int) {
	p := c.kv.Place(layer)
	return device.Slice{Buffer: c.mem.kv.Buffer, Offset: uint64(p.First)}, p.Head / 4, p.Block / 4
}

func (c *recorder) rotate(op *model.Op) {
	k, in := rotation(op), &c.set.in
	s := &in.stores[c.layers.Of[op.Layer]]
	angles := c.set.acts[model.BufX] // not read without rotation
	if op.Rope != nil {
		angles = device.Slice{Buffer: in.angles.Buffer,
			Offset: uint64(4 * c.ropeOf[op.Rope] * c.batch.Rows() * c.angleWidth)}
	}
	buffers := []device.Slice{c.set.acts[model.BufQ], c.set.acts[model.BufK], c.set.acts[model.BufV], angles}
	for _, v := range []*model.Vector{op.QNorm, op.KNorm} {
		if v != nil {
			buffers = append(buffers, c.mem.vectors[v])
		}
	}
	kv, head, block := c.cache(op.Layer)
	c.launch(k, k.Grid(op.Heads.Q, op.Heads.KV, s.segments.n), append(buffers, kv, in.at(s.segments)),
		c.strides[model.BufQ], c.strides[model.BufK], c.strides[model.BufV], c.angleWidth, op.Heads.Q, op.Heads.KV,
		head, block, c.model.Eps)
}

func (c *recorder) attention(op *model.Op) {
	k, in := attentionOf(op), &c.set.in
	s := &in.stores[c.layers.Of[op.Layer]]
	kv, head, block := c.cache(op.KVLayer)
	group := op.Heads.Q / op.Heads.KV
	push := []any{c.strides[model.BufQ], c.strides[model.BufAtt], group, head, block, op.Attn.Scale}
	if k.Window {
		push = append(push, op.Attn.Window)
	}
	if k.Softcap {
		push = append(push, float32(2*float64(op.Attn.Scale)/float64(op.Attn.Softcap)), op.Attn.Softcap)
	}
	c.launch(k, k.Grid(s.longest, group, op.Heads.KV, s.sequences.n), []device.Slice{c.set.acts[model.BufQ],
		c.set.acts[model.BufAtt], kv, in.at(s.tables), in.at(s.sequences)}, push...)
}

// stageBlocks copies the blocks that op i writes to host-visible memory.
func (c *recorder) stageBlocks(i int) {
	for _, b := range c.set.staged {
		if b.op == i {
			from := device.Slice{Buffer: c.mem.kv.Buffer, Offset: b.from(c.Runner)}
			to := device.Slice{Buffer: c.set.stage.Buffer, Offset: b.at}
			c.steps = append(c.steps, device.Copy{To: to, From: from, Bytes: uint64(b.length)})
		}
	}
}

// from returns the place of a block in the device's KV cache.
func (b *stagedBlock) from(r *Runner) uint64 {
	p := r.kv.Place(b.layer)
	return uint64(p.First + b.block*p.Block)
}
