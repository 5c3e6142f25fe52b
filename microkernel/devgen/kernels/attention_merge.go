package kernels

import (
	"fmt"

	"sandwich/microkernel/devgen"
	"sandwich/microkernel/internal/arith"
)

// AttentionMerge describes the second half of attention for few rows: a workgroup merges the blocks
// of a row in order, as Attention does.
//
// Bindings: parts, sequences (see AttentionPart), out (rows of float32), sinks (with Sinks: one
// float32 for each query head). Push words: out_stride, group, kv_heads, blocks, window (with
// Window).
type AttentionMerge struct {
	HeadDim int
	Rows    int // of the AttentionPart
	Window  bool
	Sinks   bool
}

const mergeBlocks = 64 // blocks whose factors are computed at a time

// Grid returns the workgroups.
func (o AttentionMerge) Grid(kvHeads, sequences int) [3]int {
	return [3]int{o.Rows, kvHeads, sequences}
}

// Kernel builds the kernel.
func (o AttentionMerge) Kernel() (*devgen.Kernel, error) {
	if err := SupportsParts(o.HeadDim, o.Rows); err != nil {
		return nil, err
	}
	name := fmt.Sprintf("attention_merge_%d_x%d", o.HeadDim, o.Rows)
	if o.Window {
		name += "_window"
	}
	if o.Sinks {
		name += "_sinks"
	}
	size := max(mergeBlocks, ceil(o.HeadDim+1, warp)*warp)
	m := attentionMerge{Builder: devgen.NewBuilder(name, size), AttentionMerge: o}
	m.declare()
	m.For(m.U(0), m.blocks, m.U(mergeBlocks), m.merge)
	m.finish()
	m.FewGroups()
	return m.Build()
}

// attentionMerge is an AttentionMerge in construction. Each invocation merges one dimension of the
// output, and one the sum.
type attentionMerge struct {
	*devgen.Builder
	AttentionMerge
	parts, out     devgen.Buffer
	outStride      devgen.Value
	local          devgen.Value
	column         devgen.Value // dimension, or the sum
	present        devgen.Value // whether the sequence has the row
	row, head      devgen.Value // of the batch; of all query heads
	blocks         devgen.Value // to merge
	first, stride  devgen.Value // words of the row in the first block, and from one block to the next
	top            devgen.Var   // of invocation 0: running maximum
	acc            devgen.Var
	maxima, before devgen.Array // of blocks; of those before a block
	old, added     devgen.Array // factors
	sum            devgen.Array
}

func (m *attentionMerge) declare() {
	m.parts = m.Binding("parts", devgen.Read)
	sequences := m.Binding("sequences", devgen.Read)
	m.out = m.Binding("out", devgen.Write)
	var sinks devgen.Buffer
	if m.Sinks {
		sinks = m.Binding("sinks", devgen.Read)
	}
	m.outStride = m.Push("out_stride", devgen.U32)
	group, kvHeads := m.Push("group", devgen.U32), m.Push("kv_heads", devgen.U32)
	blocks := m.Push("blocks", devgen.U32)
	var window devgen.Value
	if m.Window {
		window = m.Push("window", devgen.U32)
	}
	rows := newPartRows(m.Builder, sequences, group, window)
	i, kvHead := m.Builtin(devgen.GroupX), m.Builtin(devgen.GroupY)
	r := rows.at(i)
	m.present = m.Less(i, rows.count)
	m.row, m.head = m.Add(rows.row0, r.token), m.MulAdd(kvHead, group, r.head)
	m.blocks = m.Select(m.present, m.Sub(rows.to, rows.from), m.U(0))
	words := m.U(PartWords(m.HeadDim))
	at := m.MulAdd(m.Mul(m.Builtin(devgen.GroupZ), blocks), kvHeads, kvHead)
	m.first = m.Mul(m.MulAdd(at, m.U(m.Rows), i), words)
	m.stride = m.Mul(m.Mul(kvHeads, m.U(m.Rows)), words)

	m.maxima, m.before = m.Shared("maxima", mergeBlocks), m.Shared("before", mergeBlocks)
	m.old, m.added = m.Shared("old", mergeBlocks), m.Shared("added", mergeBlocks)
	m.sum = m.Shared("sum", 1)
	m.local = m.Builtin(devgen.LocalIndex)
	m.column = m.Min(m.local, m.U(m.HeadDim))
	m.top, m.acc = m.Var(m.Float(m.U(arith.NegInfBits))), m.Var(m.F(0))
	if m.Sinks { // the running maximum and sum begin with the sink
		m.Set(m.top, m.LoadF(sinks, m.head))
		m.Set(m.acc, m.Select(m.Equal(m.column, m.U(m.HeadDim)), m.F(1), m.F(0)))
	}
}

// place returns the first word of a block.
func (m *attentionMerge) place(block devgen.Value) devgen.Value {
	block = m.Min(block, m.Sub(m.blocks, m.U(1)))
	return m.MulAdd(block, m.stride, m.first)
}

// unseen reports whether a block has this maximum because the row does not see it.
func (m *attentionMerge) unseen(maximum devgen.Value) devgen.Value {
	return m.Equal(m.Bits(maximum), m.U(arith.NegInfBits))
}

// merge merges the blocks from `first` on.
func (m *attentionMerge) merge(first devgen.Value) {
	count := m.Min(m.Sub(m.blocks, first), m.U(mergeBlocks))
	count = m.And(m.Add(count, m.U(partUnroll-1)), m.U(-partUnroll)) // those beyond the last are unseen
	ofBlock := m.Less(m.local, count)
	m.If(ofBlock, func() {
		block := m.Add(first, m.local)
		x := m.LoadF(m.parts, m.Add(m.place(block), m.U(m.HeadDim+1)))
		x = m.Select(m.Less(block, m.blocks), x, m.Float(m.U(arith.NegInfBits)))
		m.StoreShared(m.maxima, m.local, x)
	})
	m.Barrier()
	m.If(m.Equal(m.local, m.U(0)), func() { m.scan(count) })
	m.Barrier()
	m.If(ofBlock, m.factors)
	m.Barrier()
	m.accumulate(first, count)
	m.Barrier()
}

// scan writes the running maximum before each of the first count blocks.
func (m *attentionMerge) scan(count devgen.Value) {
	m.For(m.U(0), count, m.U(partUnroll), func(first devgen.Value) {
		for j := range partUnroll {
			i := m.Add(first, m.U(j))
			x, top := m.LoadSharedF(m.maxima, i), m.Get(m.top)
			m.StoreShared(m.before, i, top)
			m.Set(m.top, m.Select(m.unseen(x), top, m.Select(m.unseen(top), x, m.FMax(top, x))))
		}
	})
}

// factors writes the factors of the block of this invocation and of those before it. The first
// block is merged into zeros: 0*0 + e*1.
func (m *attentionMerge) factors() {
	x, before := m.LoadSharedF(m.maxima, m.local), m.LoadSharedF(m.before, m.local)
	top, first := m.FMax(before, x), m.unseen(before)
	m.StoreShared(m.old, m.local, m.Select(first, m.F(0), m.Exp(m.FSub(before, top))))
	m.StoreShared(m.added, m.local, m.Select(first, m.F(1), m.Exp(m.FSub(x, top))))
}

// accumulate adds count blocks from `first` on to the sum of this invocation's column.
func (m *attentionMerge) accumulate(first, count devgen.Value) {
	m.For(m.U(0), count, m.U(partUnroll), func(i devgen.Value) {
		var list [partUnroll]devgen.Value
		for j := range list {
			block := m.Add(first, i, m.U(j))
			list[j] = m.LoadF(m.parts, m.Add(m.place(block), m.column))
		}
		for j, e := range list {
			at, x := m.Add(i, m.U(j)), m.Get(m.acc)
			unseen := m.unseen(m.LoadSharedF(m.maxima, at))
			added := m.FMul(e, m.LoadSharedF(m.added, at))
			m.Set(m.acc, m.Select(unseen, x, m.FMA(x, m.LoadSharedF(m.old, at), added)))
		}
	})
}

// finish divides the output by the sum and stores it.
func (m *attentionMerge) finish() {
	m.If(m.Equal(m.local, m.U(m.HeadDim)), func() {
		m.StoreShared(m.sum, m.U(0), m.FDiv(m.F(1), m.Get(m.acc)))
	})
	m.Barrier()
	m.If(m.AndBool(m.present, m.Less(m.local, m.U(m.HeadDim))), func() {
		at := m.MulAdd(m.row, m.outStride, m.Mul(m.head, m.U(m.HeadDim)))
		m.Store(m.out, m.Add(at, m.local), m.FMul(m.Get(m.acc), m.LoadSharedF(m.sum, m.U(0))))
	})
}
