package exec

import (
	"math"
	"unsafe"

	"sandwich/microkernel"
	"sandwich/runtime/kvcache"
	"sandwich/runtime/mem"
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

// Rows are rows of float32, Stride elements apart.
type Rows struct {
	Base   *float32
	Stride int
}

func (r Rows) at(row, col int) *float32 { return addElems(r.Base, row*r.Stride+col) }

// Attention computes softmax(Q K^T / sqrt(headDim)) V of a batch over the KV heads of one KVStore: those of a model, or of
// one rank. An Executor runs it for OpAttention, `sandwich bench attention` alone. Begin and Run of one Attention follow
// each other; its workers share one barrier.
type Attention struct {
	kv      *KVStore
	group   int // query heads of a KV head
	before  int // of the first KV head's query heads, those that another rank has
	heads   int // query heads in all
	fused   *microkernel.Attention
	tiles   []tile
	chunks  pool.Counter
	memory  *mem.Buffer
	scratch int // bytes of a worker
}

// NewAttention prepares attention with `group` query heads for every KV head of the store, for pools of at most `workers`
// workers. It fails where this host cannot run the instruction set.
func NewAttention(isa microkernel.ISA, kv *KVStore, group, workers int) (*Attention, error) {
	fused, err := microkernel.NewAttention(isa, kv.layout)
	if err != nil {
		return nil, err
	}
	a := &Attention{kv: kv, group: group, heads: group * kv.kvHeads, fused: fused, scratch: (fused.ScratchBytes() + 4095) / 4096 * 4096}
	a.memory, err = mem.Alloc(a.scratch*workers, mem.Options{Node: mem.AnyNode, Huge: true})
	return a, err
}

// cut leaves some query heads of the first and of the last KV head to other ranks, which hold these KV heads too: `heads` in all remain, beginning
// with number `before` of the first KV head.
func (a *Attention) cut(before, heads int) { a.before, a.heads = before, heads }

// queries are the query heads that read a KV head: the first of them, and how many.
func (a *Attention) queries(kvHead int) (first, n int) {
	first = max(0, kvHead*a.group-a.before)
	return first, min(a.heads, (kvHead+1)*a.group-a.before) - first
}

// Free returns the scratch; no Run may be under way.
func (a *Attention) Free() error { return a.memory.Free() }

// Begin takes on the spans of a batch, before the workers start. It keeps them until the next Begin.
func (a *Attention) Begin(spans []kvcache.Span) { a.tiles = cutTiles(a.tiles, spans) }

// Run is one worker's part in the attention of a layer: row r of q and out is row r of the batch, the heads of a KV head
// side by side. Keys and values come in blocks of 64 positions counted from position 0; each block has its own maximum,
// sum and output, merged in ascending order, so that the result of a row does not depend on tiles, chunks, company or
// threads (DESIGN rule 6). Blocks that no row of a tile sees are skipped. A barrier must follow.
func (a *Attention) Run(w *pool.Worker, layer int, q, out Rows) {
	units := len(a.tiles) * a.kv.kvHeads
	for lo, hi, ok := w.Next(&a.chunks, units, 1); ok; lo, hi, ok = w.Next(&a.chunks, units, 1) {
		for u := lo; u < hi; u++ {
			// Late tiles see the most blocks: they go first, so that the last unit is a small one.
			job := a.job(&a.tiles[len(a.tiles)-1-u/a.kv.kvHeads], layer, u%a.kv.kvHeads, q, out)
			a.fused.Run(&job, unsafe.Add(a.memory.Pointer(), w.Index()*a.scratch))
		}
	}
}

// job is one tile for the query heads that share a KV head.
func (a *Attention) job(t *tile, layer, kvHead int, q, out Rows) microkernel.AttentionJob {
	dim := a.kv.layout.HeadDim
	first, n := a.queries(kvHead)
	return microkernel.AttentionJob{
		Q: q.at(t.row, first*dim), QStride: q.Stride, Out: out.at(t.row, first*dim), OutStride: out.Stride,
		Tokens: t.n, Group: n, Pos: t.pos,
		KV: a.kv.head(layer, kvHead), Pitch: a.kv.pitch(), Table: (*int32)(unsafe.SliceData(t.span.Table)),
		Scale: float32(1 / math.Sqrt(float64(dim))),
	}
}
