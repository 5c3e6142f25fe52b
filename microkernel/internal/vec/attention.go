package vec

import (
	"errors"
	"fmt"
	"sync"
	"unsafe"

	"sandwich/microkernel/internal/jit"
	"sandwich/microkernel/internal/kernel"
	"sandwich/microkernel/internal/vecgen"
)

// Attention is the fused attention of one KV layout: scores, softmax, value product and merge of
// whole blocks in one generated function. It gives the bits of the chain it stands for (score GEMM,
// SoftmaxBlock, value GEMM up to the last position that a row sees, mergeBlock in ascending order,
// finishAttention), whatever rows share a call. It is immutable and safe for concurrent use: what a
// call writes beside its output is in the caller's scratch.
type Attention struct {
	layout KVLayout
	form   AttentionForm
	vec    *Vec
	code   []jit.Func // code[r-1] takes r rows; nil where there is no native code
	wide   []jit.Func // the same over a block of float32, into which a narrow block is widened for several tiles
}

// AttentionForm is what a family of models does to scores, which code is generated for.
type AttentionForm struct {
	Window  bool // jobs have one
	Softcap bool // jobs have one
}

// AttentionJob is the attention of consecutive tokens of one sequence for the query heads that
// share one KV head.
type AttentionJob struct {
	Q         *float32 // [Tokens][Group][HeadDim], tokens QStride elements apart
	QStride   int
	Out       *float32 // [Tokens][Group][HeadDim], tokens OutStride elements apart
	OutStride int
	Tokens    int
	Group     int // query heads of the KV head
	Pos       int // position of the first token; a token sees every position up to its own
	// Until, where it is not 0, lets every token see all positions below it, those behind its own
	// too: attention in both directions, of a text that is cached up to there.
	Until int
	// KV is where block 0 of the KV head would begin: a K block and the V block behind it. Blocks
	// of consecutive ids are Pitch bytes apart. Table holds the ids of the sequence's blocks in
	// order, (Pos+Tokens+63)/64 of them, or (Until+63)/64.
	KV    unsafe.Pointer
	Pitch int
	Table *int32
	Scale float32 // of the scores, 1/sqrt(HeadDim) as a rule; positive
	// Window is how many positions a token sees at most, its own included (Beltagy, Peters, Cohan:
	// Longformer, 2020, section 3.1); 0 where the form has none. With Until it is around the token:
	// Window/2 positions on either side. Blocks that no token sees are not read, and their entries
	// of Table may hold anything.
	Window int
	// Softcap bounds the scaled scores: Softcap*tanh(score/Softcap); 0 where the form has none.
	Softcap float32
	// Sinks, unless nil, has one more score for each of the Group heads, which takes weight and
	// gives no value (Xiao et al.: Efficient Streaming Language Models with Attention Sinks, 2024).
	Sinks *float32
	// Next is the block that this worker will likely read first after the job, or nil: it is
	// prefetched during the job's last block.
	Next unsafe.Pointer
}

// skips is how many positions before those that a token sees.
func (j *AttentionJob) skips(token int) int {
	switch {
	case j.Window == 0:
		return 0
	case j.Until > 0:
		return max(0, j.Pos+token-j.Window/2)
	}
	return max(0, j.Pos+token+1-j.Window)
}

// sees is where the positions that a token sees end.
func (j *AttentionJob) sees(token int) int {
	switch {
	case j.Until == 0:
		return j.Pos + token + 1
	case j.Window > 0:
		return min(j.Until, j.Pos+token+j.Window/2+1)
	}
	return j.Until
}

// scales sets what the kernel multiplies scores by.
func (j *AttentionJob) scales(args *vecgen.FusedArgs) {
	args.Scale = j.Scale
	if j.Softcap > 0 {
		args.Scale, args.Factor, args.SoftCap = 1, capFactor(j.Scale, j.Softcap), j.Softcap
	}
}

// after is what is prefetched during the last of the job's blocks up to number `to`.
func (j *AttentionJob) after(to int) unsafe.Pointer {
	if j.Next != nil {
		return j.Next
	}
	return unsafe.Add(j.KV, int(*at(j.Table, to-1))*j.Pitch)
}

// tileGroup tiles of rows take turns at the blocks, so that keys and values come from the L2 cache
// for all tiles but the first. From wideTiles tiles on a half-precision block is first widened to
// float32: the conversion costs a seventh of a tile's time. Fewer tiles get callBlocks blocks a
// call, which lasts at most some 100 microseconds.
const (
	tileGroup  = 12
	wideTiles  = 3
	callBlocks = 16
)

type attentionKey struct {
	isa    kernel.ISA
	layout KVLayout
	form   AttentionForm
}

var attentions sync.Map // attentionKey -> func() (*Attention, error)

// NewAttention returns the fused attention for an instruction set, a layout and a form; it is
// generated once per process. As with New it is plain Go where there is no generator or no
// executable memory, and the error says that the host cannot run the instruction set or the layout
// makes no sense.
func NewAttention(isa kernel.ISA, l KVLayout, form AttentionForm) (*Attention, error) {
	build := sync.OnceValues(func() (*Attention, error) { return buildAttention(isa, l, form) })
	once, _ := attentions.LoadOrStore(attentionKey{isa, l, form}, build)
	return once.(func() (*Attention, error))()
}

func buildAttention(isa kernel.ISA, l KVLayout, form AttentionForm) (*Attention, error) {
	if err := l.Check(); err != nil {
		return nil, err
	}
	v, err := New(isa)
	if err != nil {
		return nil, err
	}
	a := &Attention{layout: l, form: form, vec: v}
	if !v.native {
		return a, nil
	}
	if l.Elem != KVF32 {
		a.wide, err = loadAttention(isa, l.wide(), form)
	}
	if err == nil {
		a.code, err = loadAttention(isa, l, form)
	}
	if errors.Is(err, jit.ErrNoExec) {
		return &Attention{layout: l, form: form, vec: Ref()}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("attention kernels: %w", err)
	}
	return a, nil
}

// loadAttention generates the kernels of a layout of attention for every number of rows.
func loadAttention(isa kernel.ISA, l KVLayout, form AttentionForm) ([]jit.Func, error) {
	var codes [][]byte
	target := isa.Target()
	for rows := range target.FusedRows() {
		k := l.kernel(rows + 1)
		k.Window, k.Cap = form.Window, form.Softcap
		code, err := target.Fused(k)
		if err != nil {
			return nil, err
		}
		codes = append(codes, code)
	}
	return jit.Load(codes...)
}

// wide is the layout of a block widened to float32.
func (l KVLayout) wide() KVLayout { return KVLayout{HeadDim: l.HeadDim, Elem: KVF32} }

func (l KVLayout) kernel(rows int) vecgen.Fused {
	return vecgen.Fused{Rows: rows, HeadDim: l.HeadDim, F16: l.Elem == KVF16, Int8: l.Elem == KVQ8}
}

// ScratchBytes is what Run needs beside the job, per concurrent call. Scratch holds no Go pointers.
func (a *Attention) ScratchBytes() int {
	if a.code == nil {
		return 64
	}
	n := a.tileAt(tileGroup) + 64 // to align
	if a.wide != nil {
		n += a.layout.wideBytes()
	}
	return n
}

// tileAt is where in scratch the memory of tile i begins: its queries, then its state. The scratch
// of the calls comes first, the widened block behind the last tile.
func (a *Attention) tileAt(i int) int {
	k := a.layout.kernel(len(a.code))
	return (k.ScratchBytes()+63)&^63 + i*(k.StateBytes()+a.queryBytes())
}

func (a *Attention) queryBytes() int { return (4*len(a.code)*a.layout.HeadDim + 63) &^ 63 }

// Run computes the job. It allocates nothing.
func (a *Attention) Run(job *AttentionJob, scratch unsafe.Pointer) {
	if a.code == nil {
		refAttention(a.layout, job)
		return
	}
	scratch = unsafe.Add(scratch, -uintptr(scratch)&63)
	rows := job.Tokens * job.Group
	tiles := a.tilesOf(rows)
	for first := 0; first < tiles; first += tileGroup {
		g := attentionGroup{a: a, job: job, scratch: scratch, rows: rows, tiles: tiles, first: first,
			count: min(tileGroup, tiles-first)}
		g.run()
	}
}

// attentionGroup is some tiles of a job. Tile i takes the rows from i*rows/tiles on, so that tiles
// differ by one row at most.
type attentionGroup struct {
	a                         *Attention
	job                       *AttentionJob
	scratch                   unsafe.Pointer
	rows, tiles, first, count int
}

// tile returns the rows of tile i of the group and its memory.
func (g *attentionGroup) tile(i int) (lo, hi int, q, state unsafe.Pointer) {
	lo, hi = g.span(i)
	q = unsafe.Add(g.scratch, g.a.tileAt(i))
	return lo, hi, q, unsafe.Add(q, g.a.queryBytes())
}

// span is the rows of tile i.
func (g *attentionGroup) span(i int) (lo, hi int) {
	return (g.first + i) * g.rows / g.tiles, (g.first + i + 1) * g.rows / g.tiles
}

// sees is where the positions that row r of the job sees end.
func (g *attentionGroup) sees(r int) int { return g.job.sees(r / g.job.Group) }

// skips is how many positions before those that row r sees.
func (g *attentionGroup) skips(r int) int { return g.job.skips(r / g.job.Group) }

// blocksOf says which blocks the rows of tile i see: [from, to).
func (g *attentionGroup) blocksOf(i int) (from, to int) {
	lo, hi := g.span(i)
	return g.skips(lo) / KVBlock, (g.sees(hi-1) + KVBlock - 1) / KVBlock
}

func (g *attentionGroup) run() {
	for i := range g.count {
		g.begin(i)
	}
	from, _ := g.blocksOf(0)
	_, total := g.blocksOf(g.count - 1)
	if g.a.wide != nil && g.count >= wideTiles {
		g.widened(from, total)
	} else {
		g.direct(from, total)
	}
	for i := range g.count {
		g.finish(i)
	}
}

// direct runs the tiles over the blocks as they are cached.
func (g *attentionGroup) direct(from, total int) {
	for ; from < total; from += callBlocks {
		for i := range g.count {
			lo, hi := g.blocksOf(i)
			lo, hi = max(lo, from), min(hi, from+callBlocks)
			if n := hi - lo; n > 0 {
				g.blocks(g.a.code, i, vecgen.FusedArgs{
					KV: g.job.KV, Pitch: g.job.Pitch, Table: ptr(at(g.job.Table, lo)), Blocks: n,
					Last: ptr(at(g.job.Table, total-1)), After: g.job.after(total),
				})
			}
		}
	}
}

// widened runs all tiles over one block after the other, each widened first.
func (g *attentionGroup) widened(from, total int) {
	first := int32(0)
	block := unsafe.Add(g.scratch, g.a.tileAt(tileGroup))
	for b := from; b < total; b++ {
		g.a.vec.widenPair(g.a.layout, block, unsafe.Add(g.job.KV, int(*at(g.job.Table, b))*g.job.Pitch))
		for i := range g.count {
			if lo, hi := g.blocksOf(i); b >= lo && b < hi {
				g.blocks(g.a.wide, i, vecgen.FusedArgs{KV: block, Table: ptr(&first), Last: ptr(&first),
					After: block, Blocks: 1})
			}
		}
	}
}

// begin gathers the queries of a tile and resets its state.
func (g *attentionGroup) begin(i int) {
	g.gather(i)
	lo, hi, _, state := g.tile(i)
	from, _ := g.blocksOf(i)
	g.reset(state, lo, hi, from, true)
}

// gather copies the queries of a tile to one place.
func (g *attentionGroup) gather(i int) {
	lo, hi, q, _ := g.tile(i)
	dim := g.a.layout.HeadDim
	for r := lo; r < hi; r++ {
		src := at(g.job.Q, r/g.job.Group*g.job.QStride+r%g.job.Group*dim)
		copy(vecOf(at((*float32)(q), (r-lo)*dim), dim), vecOf(src, dim))
	}
}

// reset makes a state ready for the rows [lo, hi) and the blocks from number `from` on. The first
// state of a row begins with its head's sink.
func (g *attentionGroup) reset(state unsafe.Pointer, lo, hi, from int, first bool) {
	clear(vecOf((*byte)(state), g.a.layout.kernel(hi-lo).StateBytes()))
	_, maxima, sums := stateFields(state)
	left, skip := (*int32)(unsafe.Add(state, vecgen.StateLeft)), (*int32)(unsafe.Add(state, vecgen.StateSkip))
	for r := lo; r < hi; r++ {
		*at(left, r-lo) = int32(g.sees(r) - from*KVBlock)
		*at(skip, r-lo) = int32(g.skips(r) - from*KVBlock)
		*at(maxima, r-lo) = negInf
		if first && g.job.Sinks != nil {
			*at(maxima, r-lo), *at(sums, r-lo) = *at(g.job.Sinks, r%g.job.Group), 1
		}
	}
}

// blocks runs tile i over the blocks that args names.
func (g *attentionGroup) blocks(code []jit.Func, i int, args vecgen.FusedArgs) {
	lo, hi, q, state := g.tile(i)
	args.Q, args.State, args.Scratch = q, state, g.scratch
	g.job.scales(&args)
	code[hi-lo-1].Call(unsafe.Pointer(&args))
}

// finish divides a tile's outputs by their sums into place, the heads of one token at a time.
func (g *attentionGroup) finish(i int) {
	lo, hi, _, state := g.tile(i)
	out, _, sums := stateFields(state)
	g.finishFrom(lo, hi, out, sums)
}

// finishFrom is finish for the rows [lo, hi) whose outputs and sums stand side by side.
func (g *attentionGroup) finishFrom(lo, hi int, out, sums *float32) {
	dim, padded := g.a.layout.HeadDim, g.a.layout.paddedDim()
	for r := lo; r < hi; {
		head := r % g.job.Group
		n := min(g.job.Group-head, hi-r)
		dst := at(g.job.Out, r/g.job.Group*g.job.OutStride+head*dim)
		g.a.vec.finishAttention(dst, dim, at(out, (r-lo)*padded), padded, at(sums, r-lo), n, dim)
		r += n
	}
}
