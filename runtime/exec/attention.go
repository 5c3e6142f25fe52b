package exec

import (
	"math"
	"unsafe"

	"sandwich/microkernel"
	"sandwich/runtime/kvcache"
	"sandwich/runtime/model"
	"sandwich/runtime/pool"
)

// attentionTile is the most tokens of one sequence whose attention is one unit of work. It bounds scratch and lets a
// block of keys, once widened, serve many queries; results do not depend on it.
const attentionTile = 32

// tile is one unit of attention for all KV heads: n consecutive rows of one span.
type tile struct {
	span *kvcache.Span
	row  int // first row in the batch
	n    int
	pos  int // position of the first row
}

// cutTiles splits the spans of a batch into tiles.
func cutTiles(dst []tile, spans []kvcache.Span) []tile {
	dst = dst[:0]
	for i := range spans {
		s := &spans[i]
		for done := 0; done < s.Rows; done += attentionTile {
			dst = append(dst, tile{span: s, row: s.Row + done, n: min(attentionTile, s.Rows-done), pos: s.Pos + done})
		}
	}
	return dst
}

// attentionScratch is one worker's memory for a tile: all query heads that share a KV head.
type attentionScratch struct {
	scores   *float32 // [tile rows][KVBlock]
	block    *float32 // [tile rows][headDim]  output of one block
	out      *float32 // [group][tile rows][headDim]  running output
	max, sum *float32 // [group][tile rows]  running
	blockMax *float32 // [tile rows]
	blockSum *float32
	widened  *float32 // [KVBlock * headDim] keys, then the same of values
	valid    *int32   // [tile rows] positions of the block that a row sees
}

// attentionScratchElems is the size of an attentionScratch in 4-byte elements.
func attentionScratchElems(d model.Dims) int {
	group := d.Heads / d.KVHeads
	rows := max(attentionTile, group)
	return rows*kvcache.BlockTokens + rows*d.HeadDim + group*attentionTile*d.HeadDim +
		2*group*attentionTile + 3*rows + 2*kvcache.BlockTokens*d.HeadDim + 16*16
}

func newAttentionScratch(memory unsafe.Pointer, d model.Dims) attentionScratch {
	group := d.Heads / d.KVHeads
	rows := max(attentionTile, group)
	take := func(n int) *float32 {
		p := (*float32)(memory)
		memory = unsafe.Add(memory, (4*n+cacheLine-1)/cacheLine*cacheLine)
		return p
	}
	return attentionScratch{
		scores: take(rows * kvcache.BlockTokens), block: take(rows * d.HeadDim),
		out: take(group * attentionTile * d.HeadDim),
		max: take(group * attentionTile), sum: take(group * attentionTile),
		blockMax: take(rows), blockSum: take(rows),
		widened: take(2 * kvcache.BlockTokens * d.HeadDim), valid: (*int32)(unsafe.Pointer(take(rows))),
	}
}

// attention computes Att for every row of the batch. Keys and values come in blocks of 64 positions counted from
// position 0; each block has its own maximum, sum and output, merged in ascending order, so that the result of a row
// does not depend on tiles, chunks, company or threads (DESIGN rule 6). Blocks that no row of a tile sees are skipped.
func (e *Executor) attention(w *pool.Worker, op *model.Op) {
	kvHeads := e.model.Dims.KVHeads
	units := len(e.tiles) * kvHeads
	s := &e.scratch[w.Index()].attention
	for lo, hi, ok := w.Next(&e.chunks, units, 1); ok; lo, hi, ok = w.Next(&e.chunks, units, 1) {
		for u := lo; u < hi; u++ {
			// Late tiles see the most blocks: they go first, so that the last unit is a small one.
			t := &e.tiles[len(e.tiles)-1-u/kvHeads]
			if t.n == 1 {
				e.attendToken(s, t, op.Layer, u%kvHeads)
			} else {
				e.attendTile(s, t, op.Layer, u%kvHeads)
			}
		}
	}
}

// attendToken is a decode step: the query heads of one KV head are the rows, since they all see the same positions.
func (e *Executor) attendToken(s *attentionScratch, t *tile, layer, kvHead int) {
	d := e.model.Dims
	group := d.Heads / d.KVHeads
	q := addElems(e.bufs.row(model.BufQ, t.row), kvHead*group*d.HeadDim)
	rows := headRows{q: q, qStride: d.HeadDim, n: group}
	startRows(s.max, group)
	for b := range kvcache.BlocksFor(t.pos + 1) {
		seen := min(t.pos+1-b*kvcache.BlockTokens, kvcache.BlockTokens)
		fill(s.valid, group, int32(seen))
		k, v := e.kv.at(layer, t.span.Table[b], kvHead)
		e.attendBlock(s, rows, keysValues{k: k, v: v}, seen)
		e.vec.MergeBlock(s.out, d.HeadDim, s.max, s.sum, s.block, d.HeadDim, s.blockMax, s.blockSum, group, d.HeadDim)
	}
	att := addElems(e.bufs.row(model.BufAtt, t.row), kvHead*group*d.HeadDim)
	e.vec.FinishAttention(att, d.HeadDim, s.out, d.HeadDim, s.sum, group, d.HeadDim)
}

// attendTile is a piece of a prefill chunk: tokens are the rows, one query head at a time over a block of keys and
// values that is widened to float32 once for all of them.
func (e *Executor) attendTile(s *attentionScratch, t *tile, layer, kvHead int) {
	d := e.model.Dims
	group := d.Heads / d.KVHeads
	startRows(s.max, group*attentionTile)
	for b := range kvcache.BlocksFor(t.pos + t.n) {
		first := b * kvcache.BlockTokens
		seen := min(t.pos+t.n-first, kvcache.BlockTokens)
		valid := unsafe.Slice(s.valid, t.n)
		for i := range valid {
			valid[i] = int32(min(max(t.pos+i+1-first, 0), kvcache.BlockTokens))
		}
		k, v := e.kv.at(layer, t.span.Table[b], kvHead)
		kv := e.widen(s, k, v)
		for g := range group {
			q := addElems(e.bufs.row(model.BufQ, t.row), (kvHead*group+g)*d.HeadDim)
			e.attendBlock(s, headRows{q: q, qStride: e.bufs.stride[model.BufQ], n: t.n}, kv, seen)
			at := g * attentionTile
			e.vec.MergeBlock(addElems(s.out, at*d.HeadDim), d.HeadDim, addElems(s.max, at), addElems(s.sum, at),
				s.block, d.HeadDim, s.blockMax, s.blockSum, t.n, d.HeadDim)
		}
	}
	for g := range group {
		at := g * attentionTile
		att := addElems(e.bufs.row(model.BufAtt, t.row), (kvHead*group+g)*d.HeadDim)
		e.vec.FinishAttention(att, e.bufs.stride[model.BufAtt], addElems(s.out, at*d.HeadDim), d.HeadDim,
			addElems(s.sum, at), t.n, d.HeadDim)
	}
}

// headRows are query vectors, one a row.
type headRows struct {
	q       *float32
	qStride int // elements
	n       int
}

// keysValues is one block of keys and values, as cached or widened to float32.
type keysValues struct {
	k, v unsafe.Pointer
	wide bool
}

// widen turns a half-precision block into float32 panels in scratch; a float32 block is used where it lies.
func (e *Executor) widen(s *attentionScratch, k, v unsafe.Pointer) keysValues {
	if e.kv.layout.Elem == microkernel.KVF32 {
		return keysValues{k: k, v: v, wide: true}
	}
	n := kvcache.BlockTokens * e.model.Dims.HeadDim
	wideV := addElems(s.widened, n)
	e.vec.F16ToF32(s.widened, (*uint16)(k), n)
	e.vec.F16ToF32(wideV, (*uint16)(v), n)
	return keysValues{k: unsafe.Pointer(s.widened), v: unsafe.Pointer(wideV), wide: true}
}

// attendBlock leaves the block's maximum, sum and unnormalized output of every row in scratch. The value product ends
// at the last position any row sees, since what lies behind was never stored.
func (e *Executor) attendBlock(s *attentionScratch, r headRows, kv keysValues, seen int) {
	d := e.model.Dims
	scores, values := e.products.pick(kv.wide)
	scores.run(productArgs{a: r.q, aStride: r.qStride, rows: r.n, b: kv.k, k: d.HeadDim, c: s.scores, cStride: kvcache.BlockTokens, n: seen})
	scale := float32(1 / math.Sqrt(float64(d.HeadDim)))
	e.vec.SoftmaxBlock(s.scores, kvcache.BlockTokens, r.n, kvcache.BlockTokens, s.valid, scale, s.blockMax, s.blockSum)
	values.run(productArgs{a: s.scores, aStride: kvcache.BlockTokens, rows: r.n, b: kv.v, k: seen, c: s.block, cStride: d.HeadDim, n: d.HeadDim})
}

func startRows(max *float32, n int) {
	m := unsafe.Slice(max, n)
	for i := range m {
		m[i] = float32(math.Inf(-1))
	}
}

func fill(p *int32, n int, v int32) {
	s := unsafe.Slice(p, n)
	for i := range s {
		s[i] = v
	}
}
