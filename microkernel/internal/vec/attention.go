package vec

import (
	"errors"
	"fmt"
	"unsafe"

	"sandwich/microkernel/internal/jit"
	"sandwich/microkernel/internal/kernel"
)

// Attention is the fused attention of one KV layout: scores, softmax, value product and merge of
// whole blocks in one generated function. Its bits are those of the separate operations (score
// GEMM, SoftmaxBlock, value GEMM up to the last position that a row sees, mergeBlock in ascending
// order, finishAttention), regardless of the rows that share a call. It is immutable and safe for
// concurrent use: a call writes only its output and the caller's scratch.
type Attention struct {
	layout  KVLayout
	form    AttentionForm
	cpu     kernel.Features
	vec     *Vec
	code    []jit.Func // code[r-1] takes r rows; nil without native code
	wide    []jit.Func // the same for blocks converted by openBlock; nil if blocks are read as cached
	opener  jit.Func   // opens a block for a dot product; invalid if blocks are widened to float32
	scratch scratchLayout
}

// scratchLayout divides the scratch of a call: the memory of the kernels, then for each tile its
// queries and its state, then the opened blocks.
type scratchLayout struct {
	tiles, tile int // offset of the first tile, and bytes per tile
	queries     int // bytes of the queries of a tile
	query       int // bytes of a query
	opened      int // bytes of an opened block; 0 if blocks are read as cached
	together    int // blocks that are opened at a time
}

type attentionKey struct {
	isa    kernel.ISA
	layout KVLayout
	form   AttentionForm
}

// attentions has the built attention kernels.
var attentions = jit.NewCache(func(k attentionKey) (*Attention, error) {
	return buildAttention(k.isa, k.layout, k.form, kernel.Host())
})

// NewAttention returns the fused attention for an instruction set, a layout and a form, generated
// once per process. It is plain Go without a generator or executable memory. It returns an error
// if the host cannot run the instruction set, the layout is invalid, or the instruction set lacks
// the dot product.
func NewAttention(isa kernel.ISA, l KVLayout, form AttentionForm) (*Attention, error) {
	return attentions.Get(attentionKey{isa, l, form})
}

// buildAttention is NewAttention for a CPU of this host's architecture with the features.
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
		err = a.loadOpened(isa)
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

// Native reports whether the attention is generated code.
func (a *Attention) Native() bool { return a.code != nil }

// divide computes the layout of scratch.
func (a *Attention) divide() {
	k := a.kernel(len(a.code))
	sizes := a.vec.isa.Target().Attention.Sizes(k)
	r := &a.scratch
	r.query, r.queries = sizes.Query, (k.Rows*sizes.Query+63)&^63
	r.tiles, r.tile = (sizes.Scratch+63)&^63, r.queries+(k.StateBytes()+63)&^63
	switch {
	case a.form.Dot != AttendF32:
		r.opened, r.together = sizes.Opened, pairBlocks
	case a.wide != nil:
		r.opened, r.together = a.layout.wideBytes(), 1
	}
}

// loadAttention generates the kernels of attention for every number of rows.
func loadAttention(isa kernel.ISA, k kernel.AttentionSpec) ([]jit.Func, error) {
	var codes [][]byte
	target := isa.Target().Attention
	for rows := range target.Rows(k.Dot) {
		k.Rows = rows + 1
		code, err := target.Kernel(k)
		if err != nil {
			return nil, err
		}
		codes = append(codes, code)
	}
	return jit.Load(codes...)
}

func (a *Attention) kernelOf(l KVLayout, rows int) kernel.AttentionSpec {
	return kernel.AttentionSpec{Rows: rows, HeadDim: l.HeadDim, F16: l.Elem == KVF16, Int8: l.Elem == KVQ8,
		HoldsBF16: l.Rounded, Window: a.form.Window, Capped: a.form.Softcap, Dot: a.form.Dot.dot(), CPU: a.cpu}
}

// kernel returns the description of the kernel for a number of rows.
func (a *Attention) kernel(rows int) kernel.AttentionSpec { return a.kernelOf(a.layout, rows) }

// ScratchBytes returns the size of the scratch memory that each concurrent call of Run needs.
// Scratch holds no Go pointers.
func (a *Attention) ScratchBytes() int {
	if a.code == nil {
		return 64
	}
	return a.scratch.tiles + tileGroup*a.scratch.tile + a.scratch.together*a.scratch.opened + 64 // to align
}

// openFrom returns the number of tiles from which opening a block once for all of them pays off.
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
