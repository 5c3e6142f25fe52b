package attention

import (
	"slices"
	"unsafe"

	"sandwich/microkernel"
	"sandwich/runtime/exec/tp"
	"sandwich/runtime/kvcache"
	"sandwich/runtime/mem"
	"sandwich/runtime/model"
	"sandwich/runtime/pool"
)

// Shape is what the layers of one Attention have in common.
type Shape struct {
	Groups  []int // by layer: query heads of a KV head; a single entry is for all layers
	Softcap bool  // scores are capped
	Windows []int // by store: positions that a token of its layers sees, 0 for all; nil: all
	Dot     microkernel.AttentionDot
}

// group returns the query heads of a KV head of a layer.
func (k *Shape) group(layer int) int { return k.Groups[min(layer, len(k.Groups)-1)] }

// ShapeOf returns what the layers of a model need: all of them cap their scores or none, and those
// of a store have one window.
func ShapeOf(m *model.Model, l *tp.Layers) Shape {
	k := Shape{Groups: make([]int, len(l.Of)), Windows: make([]int, len(l.Kinds))}
	for i := range m.Ops {
		if op := &m.Ops[i]; op.Kind == model.OpAttention {
			k.Groups[op.Layer] = op.Heads.Q / op.Heads.KV
			k.Softcap = k.Softcap || op.Attn.Softcap > 0
			k.Windows[l.Of[op.Layer]] = op.Attn.Window
		}
	}
	return k
}

// Attention computes softmax(scale * Q K^T) V of a batch over the KV heads of one KVStore: those of
// a model, or of one rank. Calls of Begin and Run must not overlap. All workers of a Run share one
// barrier.
type Attention struct {
	kv      *KVStore
	forms   []form
	formOf  []int // by layer; -1: the layer does not attend
	counter pool.Counter
	memory  *mem.Buffer
	scratch int            // bytes of a worker
	private int            // the last of them: for chunks that others may reclaim
	states  unsafe.Pointer // states of split segments
}

// New prepares attention over the KV heads of a store, for pools of at most `workers` workers of
// which `team` share the work. isas has the instruction set of each worker kind. An instruction set
// that this host lacks is an error.
func New(isas []microkernel.ISA, kv *KVStore, shape Shape, workers, team int) (*Attention, error) {
	a := &Attention{kv: kv, formOf: make([]int, len(kv.of))}
	states := 0
	for layer := range kv.of {
		if a.formOf[layer] = -1; kv.of[layer].kvHeads == 0 {
			continue
		}
		f := newForm(kv, &shape, layer, team)
		if a.formOf[layer] = slices.IndexFunc(a.forms, func(o form) bool { return o.equal(&f) }); a.formOf[layer] >= 0 {
			continue
		}
		a.formOf[layer] = len(a.forms)
		bytes, err := f.prepare(isas, kv, microkernel.AttentionForm{Softcap: shape.Softcap, Window: f.window > 0,
			Dot: shape.Dot})
		if err != nil {
			return nil, err
		}
		states = max(states, bytes)
		for _, fused := range f.fused {
			a.scratch = max(a.scratch, (fused.ScratchBytes()+4095)/4096*4096)
		}
		a.private = max(a.private, f.privateBytes(kv.longest))
		f.reserve()
		a.forms = append(a.forms, f)
	}
	a.scratch += a.private
	var err error
	if a.memory, err = mem.Alloc(states+a.scratch*workers, mem.Options{Node: kv.memory.Node(),
		Huge: true}); err != nil {
		return nil, err
	}
	a.states = unsafe.Add(a.memory.Pointer(), a.scratch*workers)
	return a, nil
}

// ForRank sets the list of chunks and the query heads of a rank whose first and last KV head are
// also held by other ranks: `heads` query heads, beginning with number `before` of the first KV
// head. All layers have equal heads.
func (a *Attention) ForRank(rank, before, heads int) {
	a.counter.List = uint8(rank)
	for i := range a.forms {
		a.forms[i].before, a.forms[i].heads = before, heads
	}
}

// form returns the form of a layer.
func (a *Attention) form(layer int) *form { return &a.forms[a.formOf[layer]] }

// Free releases the scratch memory. No Run may be in progress.
func (a *Attention) Free() error { return a.memory.Free() }

// Begin divides a batch into chunks, before the workers start. It keeps the spans until the next
// Begin.
func (a *Attention) Begin(spans []kvcache.Span) {
	for i := range a.forms {
		f := &a.forms[i]
		f.view.update(spans)
		f.divide(f.view.spans)
		for i := range f.splits {
			for h := range f.kvHeads {
				f.left[i*f.kvHeads+h].Store(f.splits[i].chunks)
			}
		}
	}
}

// scores are the values of a layer's attention.
type scores struct {
	scale, softcap float32
	sinks          []float32 // by query head, or nil
}

// Run computes one worker's part in the attention of a layer, whose scores are multiplied by scale.
// Row r of q and out is row r of the batch; the query heads of a KV head are contiguous. A barrier
// must follow.
func (a *Attention) Run(w *pool.Worker, layer int, scale float32, q, out tp.Rows) {
	a.run(w, layer, scores{scale: scale}, q, out, tp.WholeOp)
}

// RunOp is Run for a step of an attention op, from BufQ to BufAtt.
func (a *Attention) RunOp(g *tp.Group, op *model.Op, step tp.Step) {
	s := scores{scale: op.Attn.Scale, softcap: op.Attn.Softcap}
	if op.Sinks != nil {
		s.sinks = op.Sinks.Data // of the rank's heads
	}
	a.run(g.W, op.Layer, s, g.Acts.Rows(model.BufQ), g.Acts.Rows(model.BufAtt), step)
}

// run computes the worker's chunks of a step. If segments are split, the first step has all chunks,
// because the states of a split segment do not survive a halt.
func (a *Attention) run(w *pool.Worker, layer int, s scores, q, out tp.Rows, step tp.Step) {
	f := a.form(layer)
	if len(f.splits) > 0 && step.Count > 1 {
		if step.Index > 0 {
			return
		}
		step = tp.WholeOp
	}
	first, units := step.Share(len(f.chunks) * f.kvHeads)
	scratch := unsafe.Add(a.memory.Pointer(), w.Index()*a.scratch)
	for lo, hi, ok := w.Next(&a.counter, units, 1); ok; lo, hi, ok = w.Next(&a.counter, units, 1) {
		for u := first + lo; u < first+hi; u++ {
			c := &f.chunks[u/f.kvHeads]
			job := a.job(f, &f.segments[c.segment], layer, u%f.kvHeads, q, out)
			job.Scale, job.Softcap, job.Window = s.scale, s.softcap, f.window
			if s.sinks != nil {
				first, _ := f.queries(u % f.kvHeads)
				job.Sinks = &s.sinks[first]
			}
			job.Next = a.firstBlock(f, layer, u+f.team)
			switch own := unsafe.Add(scratch, a.scratch-a.private); {
			case c.split >= 0:
				a.runSplit(w, f, c, &job, u%f.kvHeads, scratch, own)
			case w.Private() && f.outBytes(&job) <= a.private-f.tableBytes(c.to):
				f.runPrivate(w, c, &job, scratch, own)
			default:
				f.fused[w.Class()].Run(&job, scratch)
			}
		}
	}
}

// firstBlock returns the address of the keys and values of a unit, or nil if there is no such unit.
// Workers take units one by one, so the next unit of a worker is likely as many further on as there
// are workers.
func (a *Attention) firstBlock(f *form, layer, unit int) unsafe.Pointer {
	i := unit / f.kvHeads
	if i >= len(f.chunks) {
		return nil
	}
	c := &f.chunks[i]
	k, _ := a.kv.at(layer, f.segments[c.segment].of.table[c.from], unit%f.kvHeads)
	return k
}

// runSplit computes a chunk of a split segment. The worker that ends the last chunk of a segment
// merges all of them.
func (a *Attention) runSplit(w *pool.Worker, f *form, c *chunk, job *microkernel.AttentionJob, kvHead int,
	scratch, own unsafe.Pointer) {
	fused := f.ranged[w.Class()]
	s := &f.splits[c.split]
	states := microkernel.AttentionStates{First: s.first, Memory: unsafe.Add(a.states,
		(s.at*f.kvHeads+kvHead*s.states)*f.state)}
	if w.Private() && (1+c.to-c.from)*f.state <= a.private-f.tableBytes(c.to) {
		f.splitPrivate(w, c, job, &states, scratch, own)
	} else {
		fused.RunRange(job, &states, c.from, c.to, scratch)
	}
	left := &f.left[c.split*f.kvHeads+kvHead]
	if left.Add(-1) == 0 {
		left.Store(s.chunks) // for the next layer
		fused.MergeRanges(job, &states)
	}
}

// job returns the attention of a segment for the query heads of one KV head.
func (a *Attention) job(f *form, s *segment, layer, kvHead int, q, out tp.Rows) microkernel.AttentionJob {
	dim := f.layout.HeadDim
	first, n := f.queries(kvHead)
	return microkernel.AttentionJob{
		Q: q.At(s.row, first*dim), QStride: q.Stride, Out: out.At(s.row, first*dim), OutStride: out.Stride,
		Tokens: s.n, Group: n, Pos: s.pos, Until: s.of.until,
		KV: a.kv.head(layer, kvHead), Pitch: a.kv.of[layer].pitch(), Table: (*int32)(unsafe.SliceData(s.of.table)),
	}
}
