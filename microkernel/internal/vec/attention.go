package vec

import (
	"errors"
	"fmt"
	"sync"
	"unsafe"

	"sandwich/microkernel/internal/host"
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
	cpu    kernel.Features
	vec    *Vec
	code   []jit.Func // code[r-1] takes r rows; nil where there is no native code
	// the same over a block as openBlock leaves it for several tiles; nil where it reads blocks as
	// cached
	wide  []jit.Func
	pairs jit.Func // opens a block for a dot product; none where it is widened
	room  attentionRoom
}

// attentionRoom is how the scratch of a call is divided: that of the kernels, then for each tile
// its queries and its state, then the opened blocks.
type attentionRoom struct {
	tiles, tile int // where the first tile begins, and from one to the next
	queries     int // bytes of a tile's
	query       int // bytes of a row's
	opened      int // bytes of an opened block; 0 where blocks are read as they are cached
	together    int // blocks that are opened at a time
}

// AttentionForm is what a family of models does to scores, which code is generated for.
type AttentionForm struct {
	Window  bool // jobs have one
	Softcap bool // jobs have one
	Dot     AttentionDot
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

type attentionKey struct {
	isa    kernel.ISA
	layout KVLayout
	form   AttentionForm
}

var attentions sync.Map // attentionKey -> func() (*Attention, error)

// NewAttention returns the fused attention for an instruction set, a layout and a form; it is
// generated once per process. As with New it is plain Go where there is no generator or no
// executable memory, and the error says that the host cannot run the instruction set or the layout
// makes no sense, or that the instruction set has no such dot product.
func NewAttention(isa kernel.ISA, l KVLayout, form AttentionForm) (*Attention, error) {
	build := sync.OnceValues(func() (*Attention, error) { return buildAttention(isa, l, form, host.Features()) })
	once, _ := attentions.LoadOrStore(attentionKey{isa, l, form}, build)
	return once.(func() (*Attention, error))()
}

// buildAttention is NewAttention for a CPU of this host's kind with the features.
func buildAttention(isa kernel.ISA, l KVLayout, form AttentionForm, cpu kernel.Features) (*Attention, error) {
	if err := l.Check(); err != nil {
		return nil, err
	}
	if err := form.Dot.Reads(l.Elem); err != nil {
		return nil, err
	}
	v, err := New(isa)
	if err != nil {
		return nil, err
	}
	if err := form.Dot.runsOn(isa, cpu); err != nil {
		return nil, err
	}
	a := &Attention{layout: l, form: form, cpu: cpu, vec: v}
	if !v.native {
		return a, nil
	}
	switch {
	case form.Dot != AttendF32:
		err = a.loadPairs(isa)
	case l.Elem != KVF32:
		a.wide, err = loadAttention(isa, a.kernelOf(l.wide(), 0))
	}
	if err == nil {
		a.code, err = loadAttention(isa, a.kernel(0))
	}
	if errors.Is(err, jit.ErrNoExec) {
		return &Attention{layout: l, form: form, vec: Ref()}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("attention kernels: %w", err)
	}
	a.divide()
	return a, nil
}

// Native says that it is generated code.
func (a *Attention) Native() bool { return a.code != nil }

// divide lays out the scratch.
func (a *Attention) divide() {
	k := a.kernel(len(a.code))
	r := &a.room
	r.query, r.queries = k.QueryBytes(), (k.Rows*k.QueryBytes()+63)&^63
	r.tiles, r.tile = (k.ScratchBytes()+63)&^63, r.queries+(k.StateBytes()+63)&^63
	switch {
	case a.form.Dot != AttendF32:
		r.opened, r.together = k.PairBytes(), pairBlocks
	case a.wide != nil:
		r.opened, r.together = a.layout.wideBytes(), 1
	}
}

// loadAttention generates the kernels of attention for every number of rows.
func loadAttention(isa kernel.ISA, k vecgen.Fused) ([]jit.Func, error) {
	var codes [][]byte
	target := isa.Target()
	for rows := range target.FusedRows(k.Dot) {
		k.Rows = rows + 1
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

func (a *Attention) kernelOf(l KVLayout, rows int) vecgen.Fused {
	return vecgen.Fused{Rows: rows, HeadDim: l.HeadDim, F16: l.Elem == KVF16, Int8: l.Elem == KVQ8,
		Rounded: l.Rounded, Permute: a.cpu.Has(kernel.HasVBMI),
		Window: a.form.Window, Cap: a.form.Softcap, Dot: vecgen.Dot(a.form.Dot)}
}

// kernel is the kernel for a number of rows.
func (a *Attention) kernel(rows int) vecgen.Fused { return a.kernelOf(a.layout, rows) }

// ScratchBytes is what Run needs beside the job, per concurrent call. Scratch holds no Go pointers.
func (a *Attention) ScratchBytes() int {
	if a.code == nil {
		return 64
	}
	return a.room.tiles + tileGroup*a.room.tile + a.room.together*a.room.opened + 64 // to align
}

// openFrom is how many tiles make it worth to open a block once for all of them.
func (a *Attention) openFrom() int {
	if a.form.Dot != AttendF32 {
		return pairTiles
	}
	return wideTiles
}

// Run computes the job. It allocates nothing.
func (a *Attention) Run(job *AttentionJob, scratch unsafe.Pointer) {
	if a.code == nil {
		refAttention(a.layout, a.form.Dot, job)
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
