package exec

import (
	"unsafe"

	"sandwich/microkernel"
	"sandwich/runtime/kvcache"
	"sandwich/runtime/model"
)

// Latent attention (DeepSeek-V2, 2024, section 2.1): products of single heads, and what makes its
// queries, keys and values.

// heads is OpHeads: the slices of all heads' products form one list of tasks, head by head.
func (e *Executor) heads(g *group, op *model.Op) {
	if len(op.W) == 0 {
		e.copyHeads(g, op)
		return
	}
	each := g.rank.gemms[op.W[0]].of(e.rows).Tasks(e.rows)
	total := each * op.Heads.Q
	for lo, hi, ok := g.next(total, 1); ok; lo, hi, ok = g.next(total, 1) {
		for t := lo; t < hi; t++ {
			head := t / each
			p := g.product(op, 0, e.rows)
			p.o.W = g.rank.weights.InStack(op.W[0], head)
			p.o.A = unsafe.Add(p.o.A, 4*head*op.InStep)
			p.o.C = unsafe.Add(p.o.C, 4*head*op.OutStep)
			p.o.Rounded.base = p.o.Rounded.row(0, head*roundedHead(p.o.W.Layout.K))
			e.compute(g, &p, p.grid.patch(p.o.M, t%each))
		}
	}
}

// copyHeads moves elements of heads closer together or further apart.
func (e *Executor) copyHeads(g *group, op *model.Op) {
	for lo, hi, ok := g.next(e.rows, rowChunk); ok; lo, hi, ok = g.next(e.rows, rowChunk) {
		for r := lo; r < hi; r++ {
			in, out := g.row(op.In, r), g.row(op.Outs[0], r)
			for h := range op.Heads.Q {
				copy(elems(out, h*op.OutStep, op.N), elems(in, h*op.InStep, op.N))
			}
		}
	}
}

func elems(p *float32, at, n int) []float32 { return unsafe.Slice(addElems(p, at), n) }

// roundedHead is the elements between heads in rounded rows: whole blocks of 32.
func roundedHead(k int) int { return (k + 31) / 32 * 32 }

// countHeads takes the rows into account that products of single heads read, by the compute paths
// that a weight, by its index, may have.
func (r *roundedK) countHeads(m *model.Model, computes func(i int) []microkernel.Compute) {
	for i := range m.Ops {
		op := &m.Ops[i]
		if op.Kind != model.OpHeads || len(op.W) == 0 {
			continue
		}
		for _, c := range computes(op.W[0]) {
			r.count(c, op.Heads.Q*roundedHead(m.Weights[op.W[0]].K))
		}
	}
}

// latent is OpLatent, a run of rows in one block of the cache a unit.
func (e *Executor) latent(g *group, op *model.Op, rope int) {
	runs := e.runs[e.layers.Of[op.Layer]]
	for lo, hi, ok := g.next(len(runs), 1); ok; lo, hi, ok = g.next(len(runs), 1) {
		for i := lo; i < hi; i++ {
			e.latentRun(g, op, rope, &runs[i])
		}
	}
}

func (e *Executor) latentRun(g *group, op *model.Op, rope int, r *run) {
	l, form := &op.Latent, g.rank.attend.at(op.Layer)
	rotated := op.Heads.Dim - l.KV
	if !l.Split {
		rotated = op.Rope.Dim
	}
	keys, values := model.BufLatentKV, model.BufLatentKV
	if !l.Split {
		keys, values = model.BufK, model.BufV
	}
	for row := r.row; row < r.row+r.n; row++ {
		kv := g.row(model.BufLatentKV, row)
		e.turn(g.vec, addElems(kv, l.KV), 1, rotated, rope, row)
		e.latentQueries(g, op, rope, row, rotated)
		if !l.Split {
			expand(op, g.row(model.BufK, row), g.row(model.BufV, row), g.row(model.BufKeyVal, row), elems(kv, l.KV,
				rotated))
		}
	}
	at, dim := r.pos%kvcache.BlockTokens, op.Heads.Dim
	for head := range op.Heads.KV {
		kBlock, vBlock := g.rank.kv.at(op.Layer, r.block, head)
		k, v := addElems(g.row(keys, r.row), head*dim), addElems(g.row(values, r.row), head*dim)
		g.vec.StoreK(form.layout, kBlock, at, k, r.n, g.bufs.stride[keys])
		g.vec.StoreV(form.layout, vBlock, at, v, r.n, g.bufs.stride[values])
	}
}

// turn rotates heads whose rotated elements are stride apart.
func (e *Executor) turn(vec *microkernel.Vec, x *float32, heads, stride, rope, row int) {
	t := &e.rotations[rope]
	vec.RoPE(x, 2*len(t.freq), heads, stride, e.bufs.rotation(rope, row), t.neox)
}

// latentQueries puts what rotates of each head behind what is there of it, or behind its own rest.
func (e *Executor) latentQueries(g *group, op *model.Op, rope, row, rotated int) {
	l, dim := &op.Latent, op.Heads.Dim
	full, q := g.row(model.BufFull, row), g.row(model.BufQ, row)
	rest := l.Key - rotated
	to := rest // in the cached head
	if l.Split {
		to = l.KV
	}
	for h := range op.Heads.Q {
		if !l.Split {
			copy(elems(q, h*dim, rest), elems(full, h*l.Key, rest))
			clear(elems(q, h*dim+l.Key, dim-l.Key))
		}
		copy(elems(q, h*dim+to, rotated), elems(full, h*l.Key+rest, rotated))
	}
	e.turn(g.vec, addElems(q, to), op.Heads.Q, dim, rope, row)
}

// expand makes the keys and values of all heads; both are filled up to the cached length.
func expand(op *model.Op, k, v, both *float32, rotated []float32) {
	l, dim := &op.Latent, op.Heads.Dim
	rest := l.Key - len(rotated)
	for h := range op.Heads.KV {
		from := h * (rest + l.Value)
		key, value := elems(k, h*dim, dim), elems(v, h*dim, dim)
		copy(key, elems(both, from, rest))
		copy(key[rest:], rotated)
		clear(key[l.Key:])
		copy(value, elems(both, from+rest, l.Value))
		clear(value[l.Value:])
	}
}
