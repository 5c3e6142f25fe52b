package attention

import (
	"unsafe"

	"sandwich/microkernel"
	"sandwich/runtime/exec/internal/raw"
	"sandwich/runtime/exec/tp"
	"sandwich/runtime/kvcache"
	"sandwich/runtime/model"
)

// rowChunk is the number of rows that a worker takes at a time.
const rowChunk = 4

// Ops computes the ops that prepare attention: they rotate queries and keys and store keys and
// values.
type Ops struct {
	Ropes Ropes

	layers *tp.Layers
	eps    float32

	// Of the forward in progress.
	angles   *Angles
	segments [][]kvSegment // by store
	longest  int           // rows of the longest segment
}

// NewOps returns the ops of a model for contexts of so many positions.
func NewOps(m *model.Model, layers *tp.Layers, context int) *Ops {
	return &Ops{Ropes: newRopes(m, context), layers: layers, eps: m.Eps,
		segments: make([][]kvSegment, len(layers.Kinds))}
}

// Begin prepares a batch, before the workers start.
func (o *Ops) Begin(spans []kvcache.Span, angles *Angles) {
	o.angles, o.longest = angles, 0
	for i := range spans {
		o.longest = max(o.longest, min(spans[i].Rows, kvcache.BlockTokens))
	}
	states := o.layers.StateStore()
	for i := range o.segments {
		if i != states {
			o.segments[i] = divideByBlock(o.segments[i], spans, i)
		}
	}
}

// kvSegment is the part of a span that lies in one KV block: rows [row, row+n) of the batch at
// positions [pos, pos+n).
type kvSegment struct {
	row, n, pos int
	block       kvcache.BlockID
}

// divideByBlock divides the spans of a batch at the borders of blocks of a store.
func divideByBlock(dst []kvSegment, spans []kvcache.Span, store int) []kvSegment {
	dst = dst[:0]
	for i := range spans {
		s := &spans[i]
		for done := 0; done < s.Rows; {
			pos := s.Pos + done
			n := min(s.Rows-done, kvcache.BlockTokens-pos%kvcache.BlockTokens)
			dst = append(dst, kvSegment{row: s.Row + done, n: n, pos: pos,
				block: s.Tables[store][pos/kvcache.BlockTokens]})
			done += n
		}
	}
	return dst
}

// Rotate normalizes and rotates the heads of Q and K as the layer requires, and stores K and V. A
// chunk is the query heads of some KV heads over rows of one segment; see rotationOf.
func (o *Ops) Rotate(g *tp.Group, a *Attention, op *model.Op, rope int) {
	kvHeads, segments := op.Heads.KV, o.segments[o.layers.Of[op.Layer]]
	d := rotationOf(len(segments), o.longest, kvHeads, g.N)
	for lo, hi, ok := g.Next(d.chunks(len(segments)), 1); ok; lo, hi, ok = g.Next(d.chunks(len(segments)), 1) {
		for u := lo; u < hi; u++ {
			if s, ok := d.rowsOf(&segments[u/(d.heads*d.rows)], u%d.rows); ok {
				head := u / d.rows % d.heads * d.each
				o.rotateSegment(g, a, op, rope, s, head, min(head+d.each, kvHeads))
			}
		}
	}
}

// rotation divides the segments of a layer into chunks.
type rotation struct {
	each  int // KV heads of a chunk
	heads int // chunks along the heads of a segment,
	rows  int // and along its rows: 1, 2 or 4
}

// rotationRows is the smallest number of positions that a segment is divided at: those of a panel
// of keys, so that no two workers store to one cache line.
const rotationRows = 16

// rotationOf divides segments so that every worker has two chunks if possible: heads first, of as
// many as give that number, since a call for all heads of a row costs little more than one for a
// single head; then rows. longest is the number of rows of the longest segment.
func rotationOf(segments, longest, kvHeads, workers int) rotation {
	d := rotation{each: min(kvHeads, max(1, segments*kvHeads/(2*workers))), rows: 1}
	d.heads = (kvHeads + d.each - 1) / d.each
	for d.chunks(segments) < 2*workers && rotationRows*d.rows < longest {
		d.rows *= 2
	}
	return d
}

// chunks returns the number of chunks of so many segments.
func (d rotation) chunks(segments int) int { return segments * d.heads * d.rows }

// rowsOf returns part i of the rows of a segment: those of a range of positions of its block. It
// reports false if the segment has none of them.
func (d rotation) rowsOf(s *kvSegment, i int) (kvSegment, bool) {
	const block = kvcache.BlockTokens
	start := s.pos / block * block
	from := max(s.pos, start+block*i/d.rows)
	to := min(s.pos+s.n, start+block*(i+1)/d.rows)
	return kvSegment{row: s.row + from - s.pos, n: to - from, pos: from, block: s.block}, from < to
}

// rotateSegment rotates KV heads [lo, hi) of a segment, and their query heads.
func (o *Ops) rotateSegment(g *tp.Group, a *Attention, op *model.Op, rope int, s kvSegment, lo, hi int) {
	dim, form := op.Heads.Dim, a.form(op.Layer)
	first, _ := form.queries(lo)
	last, n := form.queries(hi - 1)
	there := [...]tp.Window{
		g.Window(model.BufQ, s.row, first*dim, (last+n-first)*dim),
		g.Window(model.BufK, s.row, lo*dim, (hi-lo)*dim),
		g.Window(model.BufV, s.row, lo*dim, (hi-lo)*dim),
	}
	list := there[:1] // those that change
	switch keeps := op.KVLayer == op.Layer; {
	case keeps && (op.KeysAsValues || op.VNorm != nil):
		list = there[:]
	case keeps:
		list = there[:2]
	}
	own := there // where they are computed
	private := g.PrivateWindows(s.n, list)
	if private {
		tp.Offer(g.W)
		g.TakeWindows(s.n, own[:len(list)])
	}
	o.rotateWindows(g.Vec, op, rope, &s, own[:len(list)])
	if private {
		tp.Commit(g.W)
		tp.CopyWindows(list, own[:len(list)], s.n)
	}
	if op.KVLayer != op.Layer {
		return
	}
	k, v := &there[1], &there[2]
	at := s.pos % kvcache.BlockTokens
	for head := lo; head < hi; head++ {
		kBlock, vBlock := a.kv.at(op.Layer, s.block, head)
		g.Vec.StoreK(form.layout, kBlock, at, raw.Add(k.At, (head-lo)*dim), s.n, k.Stride)
		g.Vec.StoreV(form.layout, vBlock, at, raw.Add(v.At, (head-lo)*dim), s.n, v.Stride)
	}
}

// rotateWindows rotates the rows of a segment in windows of queries and, if the layer keeps its
// own, of keys, and of values if they change.
func (o *Ops) rotateWindows(vec *microkernel.Vec, op *model.Op, rope int, s *kvSegment, list []tp.Window) {
	dim := op.Heads.Dim
	for i := range s.n {
		q, row := &list[0], s.row+i
		o.rotateHeads(vec, q.Row(i), q.N/dim, dim, op.QNorm, rope, row)
		if t := op.AttnTemperature; t != nil {
			vec.Scale(q.Row(i), float32(t.At(s.pos+i)), q.N)
		}
		if len(list) == 1 {
			continue
		}
		k := &list[1]
		heads := k.N / dim
		if len(list) > 2 {
			v := list[2].Row(i)
			if op.KeysAsValues {
				copy(unsafe.Slice(v, k.N), unsafe.Slice(k.Row(i), k.N))
			}
			if op.VNorm != nil {
				vec.RMSNormRows(v, dim, v, dim, heads, &op.VNorm.Data[0], dim, o.eps)
			}
		}
		o.rotateHeads(vec, k.Row(i), heads, dim, op.KNorm, rope, row)
	}
}

func (o *Ops) rotateHeads(vec *microkernel.Vec, x *float32, heads, dim int, norm *model.Vector, rope, row int) {
	if norm != nil {
		vec.RMSNormRows(x, dim, x, dim, heads, &norm.Data[0], dim, o.eps)
	}
	if rope >= 0 {
		o.Ropes.rotate(vec, o.angles, x, heads, dim, rope, row)
	}
}

// CopyHeads moves elements of the heads of rows closer together or further apart.
func CopyHeads(g *tp.Group, op *model.Op, rows int) {
	for lo, hi, ok := g.Next(rows, rowChunk); ok; lo, hi, ok = g.Next(rows, rowChunk) {
		for r := lo; r < hi; r++ {
			in, out := g.Row(op.In, r), g.Row(op.Outs[0], r)
			for h := range op.Heads.Q {
				copy(raw.Slice(out, h*op.OutStep, op.N), raw.Slice(in, h*op.InStep, op.N))
			}
		}
	}
}

// PrivateBytes returns the private memory that a worker needs for the rotations of a model's heads.
func PrivateBytes(m *model.Model) (largest int) {
	for i := range m.Ops {
		op := &m.Ops[i]
		if op.Kind != model.OpRotate {
			continue
		}
		if bytes := 4 * kvcache.BlockTokens * (op.Heads.Q + 2*op.Heads.KV) * op.Heads.Dim; bytes <= tp.MostPrivate {
			largest = max(largest, bytes)
		}
	}
	return largest
}
