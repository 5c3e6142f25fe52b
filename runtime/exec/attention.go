package exec

import (
	"sync/atomic"
	"unsafe"

	"sandwich/microkernel"
	"sandwich/runtime/kvcache"
	"sandwich/runtime/mem"
	"sandwich/runtime/pool"
)

// Rows are rows of float32, Stride elements apart.
type Rows struct {
	Base   *float32
	Stride int
}

func (r Rows) at(row, col int) *float32 { return addElems(r.Base, row*r.Stride+col) }

// AttentionKind is what the layers have in common that one Attention computes.
type AttentionKind struct {
	Group   int // query heads of a KV head
	Window  int // positions that a token sees, 0 for all
	Softcap float32
}

// Attention computes softmax(scale * Q K^T) V of a batch over the KV heads of one KVStore: those of
// a model, or of one rank. An Executor runs it for OpAttention, `sandwich bench attention` alone.
// Begin and Run of one Attention follow each other; its workers share one barrier.
type Attention struct {
	AttentionKind
	kv      *KVStore
	before  int // of the first KV head's query heads, those that another rank has
	heads   int // query heads in all
	fused   *microkernel.Attention
	cut     cutter
	chunks  pool.Counter
	left    []atomic.Int32 // pieces that are not done, for each split and KV head
	memory  *mem.Buffer
	scratch int            // bytes of a worker
	parts   unsafe.Pointer // states of split tiles
}

// NewAttention prepares attention of a kind over the KV heads of the store, for pools of at most
// `workers` workers of which `team` share the work. It fails where this host cannot run the
// instruction set.
func NewAttention(isa microkernel.ISA, kv *KVStore, kind AttentionKind, workers, team int) (*Attention, error) {
	group := kind.Group
	fused, err := microkernel.NewAttention(isa, kv.layout,
		microkernel.AttentionForm{Window: kind.Window > 0, Softcap: kind.Softcap > 0})
	if err != nil {
		return nil, err
	}
	a := &Attention{AttentionKind: kind, kv: kv, heads: group * kv.kvHeads, fused: fused,
		scratch: (fused.ScratchBytes() + 4095) / 4096 * 4096,
		cut:     cutter{team: team, kvHeads: kv.kvHeads, group: group, window: kind.Window}}
	if team > 1 {
		a.cut.state = fused.PartBytes(group)
		a.cut.room = min(kv.blocks, maxPartBytes/(a.cut.state*kv.kvHeads))
		a.left = make([]atomic.Int32, a.cut.mostSplits()*kv.kvHeads)
	}
	parts := a.cut.room * kv.kvHeads * a.cut.state
	if a.memory, err = mem.Alloc(parts+a.scratch*workers, mem.Options{Node: kv.memory.Node(), Huge: true}); err != nil {
		return nil, err
	}
	a.parts = unsafe.Add(a.memory.Pointer(), a.scratch*workers)
	return a, nil
}

// maxPartBytes bounds the states of split tiles.
const maxPartBytes = 256 << 20

// leave leaves some query heads of the first and of the last KV head to other ranks, which hold
// these KV heads too: `heads` in all remain, beginning with number `before` of the first KV head.
func (a *Attention) leave(before, heads int) { a.before, a.heads = before, heads }

// queries are the query heads that read a KV head: the first of them, and how many.
func (a *Attention) queries(kvHead int) (first, n int) {
	first = max(0, kvHead*a.Group-a.before)
	return first, min(a.heads, (kvHead+1)*a.Group-a.before) - first
}

// Free returns the scratch; no Run may be under way.
func (a *Attention) Free() error { return a.memory.Free() }

// Begin takes on the spans of a batch, before the workers start. It keeps them until the next
// Begin.
func (a *Attention) Begin(spans []kvcache.Span) {
	a.cut.spans(spans)
	for i := range a.cut.splits {
		for h := range a.kv.kvHeads {
			a.left[i*a.kv.kvHeads+h].Store(a.cut.splits[i].pieces)
		}
	}
}

// Run is one worker's part in the attention of a layer, whose scores are multiplied by scale, with
// a sink for each query head unless sinks is nil: row r of q and out is row r of the batch, the
// heads of a KV head side by side. Keys and values come in blocks of 64 positions counted from
// position 0; each block has its own maximum, sum and output, merged in ascending order, so that
// the result of a row does not depend on tiles, pieces, chunks, company or threads (DESIGN rule 6).
// Blocks that no row of a tile sees are skipped. A barrier must follow.
func (a *Attention) Run(w *pool.Worker, layer int, scale float32, sinks []float32, q, out Rows) {
	units := len(a.cut.pieces) * a.kv.kvHeads
	scratch := unsafe.Add(a.memory.Pointer(), w.Index()*a.scratch)
	for lo, hi, ok := w.Next(&a.chunks, units, 1); ok; lo, hi, ok = w.Next(&a.chunks, units, 1) {
		for u := lo; u < hi; u++ {
			p := &a.cut.pieces[u/a.kv.kvHeads]
			job := a.job(&a.cut.tiles[p.tile], layer, u%a.kv.kvHeads, q, out)
			job.Scale = scale
			if sinks != nil {
				first, _ := a.queries(u % a.kv.kvHeads)
				job.Sinks = &sinks[first]
			}
			job.Next = a.firstBlock(layer, u+a.cut.team)
			if p.split < 0 {
				a.fused.Run(&job, scratch)
			} else {
				a.runPiece(p, &job, u%a.kv.kvHeads, scratch)
			}
		}
	}
}

// firstBlock is where the keys and values of a unit begin, or nil where there is no such unit.
// Units go to workers one by one, so that a worker's next is likely as many further on as there are
// workers.
func (a *Attention) firstBlock(layer, unit int) unsafe.Pointer {
	i := unit / a.kv.kvHeads
	if i >= len(a.cut.pieces) {
		return nil
	}
	p := &a.cut.pieces[i]
	k, _ := a.kv.at(layer, a.cut.tiles[p.tile].span.Table[p.from], unit%a.kv.kvHeads)
	return k
}

// runPiece computes a range of blocks; whoever ends the last range of a tile merges all of them.
func (a *Attention) runPiece(p *piece, job *microkernel.AttentionJob, kvHead int, scratch unsafe.Pointer) {
	s := &a.cut.splits[p.split]
	parts := microkernel.AttentionParts{First: s.first, Memory: unsafe.Add(a.parts,
		(s.at*a.kv.kvHeads+kvHead*s.states)*a.cut.state)}
	a.fused.RunPart(job, &parts, p.from, p.to, scratch)
	left := &a.left[p.split*a.kv.kvHeads+kvHead]
	if left.Add(-1) == 0 {
		left.Store(s.pieces) // for the next layer
		a.fused.MergeParts(job, &parts)
	}
}

// job is one tile for the query heads that share a KV head.
func (a *Attention) job(t *tile, layer, kvHead int, q, out Rows) microkernel.AttentionJob {
	dim := a.kv.layout.HeadDim
	first, n := a.queries(kvHead)
	return microkernel.AttentionJob{
		Q: q.at(t.row, first*dim), QStride: q.Stride, Out: out.at(t.row, first*dim), OutStride: out.Stride,
		Tokens: t.n, Group: n, Pos: t.pos, Window: a.Window, Softcap: a.Softcap,
		KV: a.kv.head(layer, kvHead), Pitch: a.kv.pitch(), Table: (*int32)(unsafe.SliceData(t.span.Table)),
	}
}
