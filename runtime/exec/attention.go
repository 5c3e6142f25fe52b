package exec

import (
	"slices"
	"sync/atomic"
	"unsafe"

	"sandwich/microkernel"
	"sandwich/runtime/kvcache"
	"sandwich/runtime/mem"
	"sandwich/runtime/model"
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
	Groups  []int // by layer: query heads of a KV head; of one entry, that of all
	Softcap bool  // scores are capped
	Windows []int // by store: positions that a token of its layers sees, 0 for all; nil: all
	Dot     microkernel.AttentionDot
}

// group is that of a layer.
func (k *AttentionKind) group(layer int) int { return k.Groups[min(layer, len(k.Groups)-1)] }

// scores are the values of a layer's attention.
type scores struct {
	scale, softcap float32
	sinks          []float32 // [query heads] or nil
}

// Attention computes softmax(scale * Q K^T) V of a batch over the KV heads of one KVStore: those of
// a model, or of one rank. An Executor runs it for OpAttention, `sandwich bench attention` alone.
// Begin and Run of one Attention follow each other; its workers share one barrier.
type Attention struct {
	kv      *KVStore
	cuts    []cut // of each form that layers have
	cutOf   []int // by layer
	chunks  pool.Counter
	memory  *mem.Buffer
	scratch int            // bytes of a worker
	apart   int            // of them, behind all others: for what it computes apart
	states  unsafe.Pointer // states of split tiles
}

// cut is the attention of a batch in the layers of one store whose heads are alike.
type cut struct {
	cutter
	layout microkernel.KVLayout
	before int // of the first KV head's query heads, those that another rank has
	heads  int // query heads in all
	view   view
	fused  []*microkernel.Attention // by class of workers
	ranged []*microkernel.Attention // the same for ranges of split tiles, whose states all classes read
	left   []atomic.Int32           // ranges that are not done, for each split and KV head
}

// NewAttention prepares attention of a kind over the KV heads of the store, for pools of at most
// `workers` workers of which `team` share the work. It fails where this host cannot run the
// instruction sets, one for each class of workers.
func NewAttention(isas []microkernel.ISA, kv *KVStore, kind AttentionKind, workers, team int) (*Attention, error) {
	a := &Attention{kv: kv, cutOf: make([]int, len(kv.of))}
	states := 0
	for layer := range kv.of {
		if a.cutOf[layer] = -1; kv.of[layer].kvHeads == 0 {
			continue // it does not attend
		}
		c := newCut(kv, &kind, layer, team)
		if a.cutOf[layer] = slices.IndexFunc(a.cuts, func(o cut) bool { return o.sameForm(&c) }); a.cutOf[layer] >= 0 {
			continue
		}
		a.cutOf[layer] = len(a.cuts)
		bytes, err := c.prepare(isas, kv, microkernel.AttentionForm{Softcap: kind.Softcap, Window: c.window > 0,
			Dot: kind.Dot})
		if err != nil {
			return nil, err
		}
		states = max(states, bytes)
		for _, fused := range c.fused {
			a.scratch = max(a.scratch, (fused.ScratchBytes()+4095)/4096*4096)
		}
		a.apart = max(a.apart, c.apartBytes(kv.longest))
		c.reserve()
		a.cuts = append(a.cuts, c)
	}
	a.scratch += a.apart
	var err error
	if a.memory, err = mem.Alloc(states+a.scratch*workers, mem.Options{Node: kv.memory.Node(),
		Huge: true}); err != nil {
		return nil, err
	}
	a.states = unsafe.Add(a.memory.Pointer(), a.scratch*workers)
	return a, nil
}

// newCut is the form of a layer's attention.
func newCut(kv *KVStore, kind *AttentionKind, layer, team int) cut {
	store, l := kv.layers.Of[layer], &kv.of[layer]
	c := cut{cutter: cutter{team: team, kvHeads: l.kvHeads, group: kind.group(layer)}, layout: l.layout,
		view: newView(kv.layers.Kinds[store], store)}
	c.heads = c.group * c.kvHeads
	if kind.Windows != nil {
		c.window = kind.Windows[store]
	}
	return c
}

// sameForm tells whether layers of two forms can share one cut.
func (c *cut) sameForm(o *cut) bool {
	return c.view.store == o.view.store && c.layout == o.layout && c.kvHeads == o.kvHeads && c.group == o.group
}

// prepare makes the kernels, and says how much memory states of split tiles take.
func (c *cut) prepare(isas []microkernel.ISA, kv *KVStore, form microkernel.AttentionForm) (
	bytes int, err error) {
	for _, isa := range isas {
		fused, err := microkernel.NewAttention(isa, c.layout, form)
		if err != nil {
			return 0, err
		}
		ranged := fused
		if len(c.fused) > 0 && !fused.SharesStates(c.fused[0], c.group) {
			ranged = c.fused[0]
		}
		c.fused, c.ranged = append(c.fused, fused), append(c.ranged, ranged)
	}
	if c.team == 1 {
		return 0, nil
	}
	c.state = c.fused[0].StateBytes(c.group)
	c.room = min(kv.longest, maxStateBytes/(c.state*c.kvHeads))
	c.left = make([]atomic.Int32, c.mostSplits()*c.kvHeads)
	return c.room * c.kvHeads * c.state, nil
}

// maxStateBytes bounds the states of split tiles.
const maxStateBytes = 256 << 20

// leave leaves some query heads of the first and of the last KV head to other ranks, which hold
// these KV heads too: `heads` in all remain, beginning with number `before` of the first KV head.
func (a *Attention) leave(before, heads int) {
	for i := range a.cuts {
		a.cuts[i].before, a.cuts[i].heads = before, heads
	}
}

// at is the form of a layer.
func (a *Attention) at(layer int) *cut { return &a.cuts[a.cutOf[layer]] }

// queries are the query heads that read a KV head: the first of them, and how many.
func (c *cut) queries(kvHead int) (first, n int) {
	first = max(0, kvHead*c.group-c.before)
	return first, min(c.heads, (kvHead+1)*c.group-c.before) - first
}

// Free returns the scratch; no Run may be under way.
func (a *Attention) Free() error { return a.memory.Free() }

// Begin takes on the spans of a batch, before the workers start. It keeps them until the next
// Begin.
func (a *Attention) Begin(spans []kvcache.Span) {
	for i := range a.cuts {
		c := &a.cuts[i]
		c.view.look(spans)
		c.lay(c.view.stretches)
		for i := range c.splits {
			for h := range c.kvHeads {
				c.left[i*c.kvHeads+h].Store(c.splits[i].ranges)
			}
		}
	}
}

// Run is one worker's part in the attention of a layer, whose scores are multiplied by scale: row r
// of q and out is row r of the batch, the heads of a KV head side by side. Keys and values come in
// blocks of 64 positions counted from position 0; each block has its own maximum, sum and output,
// merged in ascending order, so that the result of a row does not depend on tiles, ranges, chunks,
// company or threads (DESIGN rule 6). Blocks that no row of a tile sees are skipped. A barrier must
// follow.
func (a *Attention) Run(w *pool.Worker, layer int, scale float32, q, out Rows) {
	a.run(w, layer, scores{scale: scale}, q, out, whole)
}

// run is Run, or the units that a cut of it has: all of them are the first one's where tiles are
// split, because what a split tile has gathered lasts as long as a Run of the executor.
func (a *Attention) run(w *pool.Worker, layer int, s scores, q, out Rows, step portion) {
	c := a.at(layer)
	if len(c.splits) > 0 && step.of > 1 {
		if step.at > 0 {
			return
		}
		step = whole
	}
	first, units := step.share(len(c.ranges) * c.kvHeads)
	scratch := unsafe.Add(a.memory.Pointer(), w.Index()*a.scratch)
	for lo, hi, ok := w.Next(&a.chunks, units, 1); ok; lo, hi, ok = w.Next(&a.chunks, units, 1) {
		for u := first + lo; u < first+hi; u++ {
			p := &c.ranges[u/c.kvHeads]
			job := a.job(c, &c.tiles[p.tile], layer, u%c.kvHeads, q, out)
			job.Scale, job.Softcap, job.Window = s.scale, s.softcap, c.window
			if s.sinks != nil {
				first, _ := c.queries(u % c.kvHeads)
				job.Sinks = &s.sinks[first]
			}
			job.Next = a.firstBlock(c, layer, u+c.team)
			switch own := unsafe.Add(scratch, a.scratch-a.apart); {
			case p.split >= 0:
				a.runRange(w, c, p, &job, u%c.kvHeads, scratch, own)
			case w.Apart() && c.tileBytes(&job) <= a.apart-c.tableBytes(p.to):
				c.runApart(w, p, &job, scratch, own)
			default:
				c.fused[w.Class()].Run(&job, scratch)
			}
		}
	}
}

// firstBlock is where the keys and values of a unit begin, or nil where there is no such unit.
// Units go to workers one by one, so that a worker's next is likely as many further on as there are
// workers.
func (a *Attention) firstBlock(c *cut, layer, unit int) unsafe.Pointer {
	i := unit / c.kvHeads
	if i >= len(c.ranges) {
		return nil
	}
	p := &c.ranges[i]
	k, _ := a.kv.at(layer, c.tiles[p.tile].of.table[p.from], unit%c.kvHeads)
	return k
}

// runRange computes a range of blocks; whoever ends the last range of a tile merges all of them.
func (a *Attention) runRange(w *pool.Worker, c *cut, p *kvRange, job *microkernel.AttentionJob, kvHead int,
	scratch, own unsafe.Pointer) {
	fused := c.ranged[w.Class()]
	s := &c.splits[p.split]
	states := microkernel.AttentionStates{First: s.first, Memory: unsafe.Add(a.states,
		(s.at*c.kvHeads+kvHead*s.states)*c.state)}
	if w.Apart() && (1+p.to-p.from)*c.state <= a.apart-c.tableBytes(p.to) {
		c.rangeApart(w, p, job, &states, scratch, own)
	} else {
		fused.RunRange(job, &states, p.from, p.to, scratch)
	}
	left := &c.left[p.split*c.kvHeads+kvHead]
	if left.Add(-1) == 0 {
		left.Store(s.ranges) // for the next layer
		fused.MergeRanges(job, &states)
	}
}

// job is one tile for the query heads that share a KV head.
func (a *Attention) job(c *cut, t *tile, layer, kvHead int, q, out Rows) microkernel.AttentionJob {
	dim := c.layout.HeadDim
	first, n := c.queries(kvHead)
	return microkernel.AttentionJob{
		Q: q.at(t.row, first*dim), QStride: q.Stride, Out: out.at(t.row, first*dim), OutStride: out.Stride,
		Tokens: t.n, Group: n, Pos: t.pos, Until: t.of.until,
		KV: a.kv.head(layer, kvHead), Pitch: a.kv.of[layer].pitch(), Table: (*int32)(unsafe.SliceData(t.of.table)),
	}
}

// scoresOf are the values of an op, whose sinks are those of the rank's heads.
func scoresOf(op *model.Op) scores {
	s := scores{scale: op.Attn.Scale, softcap: op.Attn.Softcap}
	if op.Sinks != nil {
		s.sinks = op.Sinks.Data
	}
	return s
}

// kindOfAttention is what the layers of a model need: all cap their scores or none, and those of a
// store have one window.
func kindOfAttention(m *model.Model, l *Layers) AttentionKind {
	k := AttentionKind{Groups: make([]int, len(l.Of)), Windows: make([]int, len(l.Kinds))}
	for i := range m.Ops {
		if op := &m.Ops[i]; op.Kind == model.OpAttention {
			k.Groups[op.Layer] = op.Heads.Q / op.Heads.KV
			k.Softcap = k.Softcap || op.Attn.Softcap > 0
			k.Windows[l.Of[op.Layer]] = op.Attn.Window
		}
	}
	return k
}
