package attention

import (
	"sandwich/runtime/exec/internal/raw"
	"sandwich/runtime/exec/tp"
	"sandwich/runtime/kvcache"
	"sandwich/runtime/model"
)

// Latent makes the queries, keys and values of latent attention and stores keys and values
// (DeepSeek-V2, 2024, section 2.1). A chunk is a segment.
func (o *Ops) Latent(g *tp.Group, a *Attention, op *model.Op, rope int) {
	segments := o.segments[o.layers.Of[op.Layer]]
	for lo, hi, ok := g.Next(len(segments), 1); ok; lo, hi, ok = g.Next(len(segments), 1) {
		for i := lo; i < hi; i++ {
			o.latentSegment(g, a, op, rope, &segments[i])
		}
	}
}

func (o *Ops) latentSegment(g *tp.Group, a *Attention, op *model.Op, rope int, s *kvSegment) {
	l, form := &op.Latent, a.form(op.Layer)
	rotated := op.Heads.Dim - l.KV
	if !l.Split {
		rotated = op.Rope.Dim
	}
	keys, values := model.BufLatentKV, model.BufLatentKV
	if !l.Split {
		keys, values = model.BufK, model.BufV
	}
	for row := s.row; row < s.row+s.n; row++ {
		kv := g.Row(model.BufLatentKV, row)
		o.Ropes.rotate(g.Vec, o.angles, raw.Add(kv, l.KV), 1, rotated, rope, row)
		o.latentQueries(g, op, rope, row, rotated)
		if !l.Split {
			expand(op, g.Row(model.BufK, row), g.Row(model.BufV, row), g.Row(model.BufKeyVal, row),
				raw.Slice(kv, l.KV, rotated))
		}
	}
	at, dim := s.pos%kvcache.BlockTokens, op.Heads.Dim
	for head := range op.Heads.KV {
		kBlock, vBlock := a.kv.at(op.Layer, s.block, head)
		k, v := raw.Add(g.Row(keys, s.row), head*dim), raw.Add(g.Row(values, s.row), head*dim)
		g.Vec.StoreK(form.layout, kBlock, at, k, s.n, g.Acts.Stride[keys])
		g.Vec.StoreV(form.layout, vBlock, at, v, s.n, g.Acts.Stride[values])
	}
}

// latentQueries appends the rotated elements of each query head to the elements that are already
// there, or to the elements of the head that do not rotate.
func (o *Ops) latentQueries(g *tp.Group, op *model.Op, rope, row, rotated int) {
	l, dim := &op.Latent, op.Heads.Dim
	full, q := g.Row(model.BufFull, row), g.Row(model.BufQ, row)
	rest := l.Key - rotated
	to := rest // in the cached head
	if l.Split {
		to = l.KV
	}
	for h := range op.Heads.Q {
		if !l.Split {
			copy(raw.Slice(q, h*dim, rest), raw.Slice(full, h*l.Key, rest))
			clear(raw.Slice(q, h*dim+l.Key, dim-l.Key))
		}
		copy(raw.Slice(q, h*dim+to, rotated), raw.Slice(full, h*l.Key+rest, rotated))
	}
	o.Ropes.rotate(g.Vec, o.angles, raw.Add(q, to), op.Heads.Q, dim, rope, row)
}

// expand makes the keys and values of all heads and pads both to the length that the cache has.
func expand(op *model.Op, k, v, both *float32, rotated []float32) {
	l, dim := &op.Latent, op.Heads.Dim
	rest := l.Key - len(rotated)
	for h := range op.Heads.KV {
		from := h * (rest + l.Value)
		key, value := raw.Slice(k, h*dim, dim), raw.Slice(v, h*dim, dim)
		copy(key, raw.Slice(both, from, rest))
		copy(key[rest:], rotated)
		clear(key[l.Key:])
		copy(value, raw.Slice(both, from+rest, l.Value))
		clear(value[l.Value:])
	}
}
