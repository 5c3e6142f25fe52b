package exec

import (
	"math"
	"unsafe"

	"sandwich/microkernel"
	"sandwich/runtime/kvcache"
	"sandwich/runtime/model"
	"sandwich/runtime/pool"
)

// attentionTile is the most tokens of one sequence whose attention is one unit of work: enough for a block of keys to
// serve many queries while it is cached. Results do not depend on it.
const attentionTile = 64

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

// attention computes Att for every row of the batch. Keys and values come in blocks of 64 positions counted from
// position 0; each block has its own maximum, sum and output, merged in ascending order, so that the result of a row
// does not depend on tiles, chunks, company or threads (DESIGN rule 6). Blocks that no row of a tile sees are skipped.
func (e *Executor) attention(w *pool.Worker, op *model.Op) {
	kvHeads := e.model.Dims.KVHeads
	units := len(e.tiles) * kvHeads
	scratch := e.scratch[w.Index()].attention
	for lo, hi, ok := w.Next(&e.chunks, units, 1); ok; lo, hi, ok = w.Next(&e.chunks, units, 1) {
		for u := lo; u < hi; u++ {
			// Late tiles see the most blocks: they go first, so that the last unit is a small one.
			e.attend(scratch, &e.tiles[len(e.tiles)-1-u/kvHeads], op.Layer, u%kvHeads)
		}
	}
}

// attend runs one tile for the query heads that share a KV head.
func (e *Executor) attend(scratch unsafe.Pointer, t *tile, layer, kvHead int) {
	d := e.model.Dims
	group := d.Heads / d.KVHeads
	first := kvHead * group * d.HeadDim
	job := microkernel.AttentionJob{
		Q: addElems(e.bufs.row(model.BufQ, t.row), first), QStride: e.bufs.stride[model.BufQ],
		Out: addElems(e.bufs.row(model.BufAtt, t.row), first), OutStride: e.bufs.stride[model.BufAtt],
		Tokens: t.n, Group: group, Pos: t.pos,
		KV: e.kv.head(layer, kvHead), Pitch: e.kv.pitch(), Table: (*int32)(unsafe.SliceData(t.span.Table)),
		Scale: float32(1 / math.Sqrt(float64(d.HeadDim))),
	}
	e.fused.Run(&job, scratch)
}
