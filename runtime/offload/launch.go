package offload

import (
	"fmt"

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
func (c *recorder) launch(d description, groups [3]int, buffers bindings, push pushes) {
	if c.err != nil {
		return
	}
	p, err := c.programs.of(d)
	if err != nil {
		c.err = err
		return
	}
	c.launchProgram(p, groups, buffers, push)
}

// launchProgram adds a compiled kernel.
func (c *recorder) launchProgram(p device.Program, groups [3]int, buffers bindings, push pushes) {
	l, k := device.Launch{Program: p, Groups: groups}, p.Kernel()
	for i := range k.Bindings {
		l.Buffers = append(l.Buffers, buffers[k.Bindings[i].Name])
	}
	for _, name := range k.Push {
		x, ok := push[name]
		if !ok {
			c.err = fmt.Errorf("kernel %s: no value for %s", k.Name, name)
			return
		}
		l.Push = append(l.Push, word(x))
	}
	c.steps = append(c.steps, l)
}

// op adds the steps of op i.
func (c *recorder) op(i int) {
	op := &c.model.Ops[i]
	hidden := c.model.Dims.Hidden
	h, y := c.set.acts[model.BufH], c.set.acts[model.BufY]
	switch op.Kind {
	case model.OpNorm:
		c.norm(c.normOf(i), model.BufX, model.BufH, op.Norm)
	case model.OpAddNorm:
		if op.Post != nil {
			c.norm(c.normRows(), model.BufY, model.BufY, op.Post)
		}
		if op.Norm != nil {
			c.norm(c.normOf(i), model.BufX, model.BufH, op.Norm)
			return
		}
		c.launch(addRows{}, kernels.RowGrid(hidden, c.batch.Rows()),
			bindings{"dst": c.set.acts[model.BufX], "src": y},
			pushes{"n": hidden, "dst_stride": c.strides[model.BufX], "src_stride": c.strides[model.BufY]})
	case model.OpMatMul:
		c.product(i)
	case model.OpRotate:
		c.rotate(op)
	case model.OpAttention:
		c.attention(op)
	case model.OpGather:
		c.launch(gatherRows{}, kernels.RowGrid(hidden, len(c.batch.LogitRows)),
			bindings{"dst": y, "src": h, "index": c.set.in.at(c.set.in.logits)},
			pushes{"n": hidden, "dst_stride": c.strides[model.BufY], "src_stride": c.strides[model.BufH],
				"scale": op.Scale})
	}
}

// norm normalizes the rows of the batch, to which BufY is added first if the kernel adds. All
// buffers have the width of the model.
func (c *recorder) norm(k kernels.Norm, from, to model.Buf, weight *model.Vector) {
	hidden := c.model.Dims.Hidden
	c.launch(k, k.Grid(hidden, c.batch.Rows()),
		bindings{"x": c.set.acts[from], "y": c.set.acts[model.BufY], "weight": c.mem.vectors[weight],
			"out": c.set.acts[to], "quantized": c.set.quantized},
		pushes{"n": hidden, "x_stride": c.strides[from], "y_stride": c.strides[model.BufY],
			"out_stride": c.strides[to], "quantized_stride": k.Path.ActRowBytes(hidden) / 4, "eps": c.model.Eps})
}

// product adds the products of op i, and the quantization of their input.
func (c *recorder) product(i int) {
	op := &c.model.Ops[i]
	rows := c.batch.Rows()
	if op.Wanted {
		rows = len(c.batch.LogitRows)
	}
	holds := c.quantizedBefore(i) // path of the quantized rows
	for i, w := range op.W {
		p := c.assembly.Weights.At(0, w)
		s := c.shape(op, i, rows)
		in := c.set.acts[op.In]
		if p.Compute != microkernel.ComputeF32 {
			if holds != p.Compute {
				holds = p.Compute
				k := quantization(p.Compute, p.Layout.K)
				c.launch(k, k.Grid(p.Layout.K, rows),
					bindings{"x": in, "quantized": c.set.quantized},
					pushes{"n": p.Layout.K, "x_stride": c.strides[op.In], "out_stride": 0,
						"quantized_stride": s.AStride, "eps": float32(0)})
			}
			in = c.set.quantized
		}
		if op.Act != 0 && i > 0 {
			break // the kernel of the gate computes both
		}
		buffers := bindings{"a": in, "w": c.mem.weights[w], "c": c.set.acts[op.Outs[i]]}
		if op.Act != 0 {
			buffers["up"] = c.mem.weights[op.W[1]]
		}
		if b := biasOf(op, i); b != nil {
			buffers["bias"] = c.mem.vectors[b]
		}
		push := pushes{"m": s.M, "n": s.N, "k": s.K, "a_stride": s.AStride, "w_stride": s.WStride,
			"c_stride": s.CStride}
		if ready := c.ready(s); ready != nil && c.err == nil {
			c.launchProgram(ready, s.Grid(s.M, s.N), buffers, push)
			continue
		}
		c.launch(s.Product, s.Grid(s.M, s.N), buffers, push)
	}
}

// cache returns the KV cache of a layer and the words of a head's and of all heads' blocks.
func (c *recorder) cache(layer int) (kv device.Slice, head, block int) {
	p := c.kv.Place(layer)
	return device.Slice{Buffer: c.mem.kv.Buffer, Offset: uint64(p.First)}, p.Head / 4, p.Block / 4
}

// gather adds the copies of the keys and values of the batch's rows in some layers to the staging
// buffer, as few kernels as possible.
func (c *recorder) gather(list []stagedBlock) {
	for len(list) > 0 {
		op := &c.model.Ops[list[0].op]
		n, layerWords := c.blocks.alike(list)
		kv, head, block := c.cache(op.Layer)
		s, k := &c.set.in.stores[c.layers.Of[op.Layer]], gatherOf(op)
		c.launch(k, k.Grid(n, op.Heads.KV, s.segments.n), bindings{"kv": kv, "segments": c.set.in.at(s.segments),
			"out": {Buffer: c.set.stage.Buffer, Offset: list[0].at}},
			pushes{"rows": c.batch.Rows(), "kv_heads": op.Heads.KV, "head_words": head, "block_words": block,
				"layer_words": layerWords})
		list = list[n:]
	}
}

func (c *recorder) rotate(op *model.Op) {
	k, in := rotation(op), &c.set.in
	s := &in.stores[c.layers.Of[op.Layer]]
	kv, head, block := c.cache(op.Layer)
	buffers := bindings{"q": c.set.acts[model.BufQ], "k": c.set.acts[model.BufK], "v": c.set.acts[model.BufV],
		"angles": c.set.acts[model.BufX], "kv": kv, "segments": in.at(s.segments)}
	if op.Rope != nil { // else the angles are not read
		buffers["angles"] = device.Slice{Buffer: in.angles.Buffer,
			Offset: uint64(4 * c.ropeOf[op.Rope] * c.batch.Rows() * c.angleWidth)}
	}
	for name, v := range map[string]*model.Vector{"q_norm": op.QNorm, "k_norm": op.KNorm} {
		if v != nil {
			buffers[name] = c.mem.vectors[v]
		}
	}
	c.launch(k, k.Grid(op.Heads.Q, op.Heads.KV, s.segments.n), buffers, pushes{"q_stride": c.strides[model.BufQ],
		"k_stride": c.strides[model.BufK], "v_stride": c.strides[model.BufV], "angle_stride": c.angleWidth,
		"q_heads": op.Heads.Q, "kv_heads": op.Heads.KV, "head_words": head, "block_words": block, "eps": c.model.Eps})
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
