package kernels

import (
	"fmt"

	"sandwich/microkernel/devgen"
	"sandwich/microkernel/internal/kernel"
	"sandwich/microkernel/qtype"
)

// RowGEMM is a GEMM by integer paths for few rows, with the same bindings, push words and bits.
// Rows is the number of rows of a workgroup, 1 to 8. Panels is not used.
//
// A workgroup computes one panel. Its invocations compute the integer sums of sixteen blocks of k
// at a time, so that many loads are in flight; sixteen invocations per row then add them to the
// chains in order.
type RowGEMM GEMM

const (
	rowSlices = 16 // blocks of k at a time
	rowGEMM   = rowSlices * qtype.PanelWidth
)

// Grid returns the workgroups of a product of m rows and n columns.
func (g RowGEMM) Grid(m, n int) [3]int {
	return [3]int{ceil(n, qtype.PanelWidth), ceil(m, g.Rows), 1}
}

// Kernel builds the kernel.
func (g RowGEMM) Kernel() (*devgen.Kernel, error) {
	if err := GEMM(g).check(); err != nil {
		return nil, err
	}
	switch {
	case g.Path == kernel.ComputeF32:
		return nil, fmt.Errorf("device product: path %s has no kernel for few rows; use GEMM", g.Path)
	case g.Rows < 1 || g.Rows > 8:
		return nil, fmt.Errorf("device product: %d rows per workgroup; use 1 to 8", g.Rows)
	}
	r := rowProduct{product: newProduct(GEMM(g), "rows", rowGEMM), d: g.Weight.Desc()}
	r.locate()
	sums, chains := r.sums, r.chains
	if g.Path == kernel.ComputeInt8K {
		sums, chains = r.integerSums, r.integerChains
	}
	r.For(r.U(0), r.blocks, r.U(rowSlices), func(first devgen.Value) {
		sums(first)
		r.Barrier()
		chains(first)
		r.Barrier()
	})
	r.finishRows()
	return r.Build()
}

// rowProduct is a RowGEMM in construction.
type rowProduct struct {
	*product
	d             *qtype.Desc
	blocks        devgen.Value
	slice, column devgen.Value // of the invocation; a column of the panel
	panel         devgen.Value // first word of the panel
	row0          devgen.Value

	// Of path int8-k, spans are summed, offsets has the same form as dots, and scales are those of
	// the superblock: of weights, then of offsets.
	dots    devgen.Array // [row][weight][span][slice][column]
	scales  devgen.Array // [weight][span][slice][column]
	offsets devgen.Array // [weight][slice][column] of affine types
	table   devgen.Array // see newCodebook
	acc     devgen.Var   // chain number `slice`: row*weights + weight
	sum     devgen.Var   // chain of a superblock
}

func (r *rowProduct) spans() int { return qtype.SubBlockK / r.d.Span() }

func (r *rowProduct) locate() {
	local := r.Builtin(devgen.LocalIndex)
	r.column, r.slice = r.And(local, r.U(qtype.PanelWidth-1)), r.Shr(local, r.U(4))
	r.panel = r.Mul(r.Builtin(devgen.GroupX), r.wStride)
	r.row0 = r.Mul(r.Builtin(devgen.GroupY), r.U(r.g.Rows))
	r.blocks = r.Shr(r.k, r.U(5))
	dots, scales, offsets := r.g.Rows*len(r.w)*r.spans(), len(r.w)*r.spans(), len(r.w)
	if r.g.Path == kernel.ComputeInt8K {
		dots = r.g.Rows * len(r.w)
		scales, offsets = len(r.w)*len(r.d.BlockScales), dots
	}
	r.dots, r.scales = r.Shared("dots", dots*rowGEMM), r.Shared("scales", scales*rowGEMM)
	if r.d.Affine() {
		r.offsets = r.Shared("offsets", offsets*rowGEMM)
	}
	r.table = newCodebook(r.Builder, r.d, rowGEMM)
	r.acc, r.sum = r.Var(r.F(0)), r.Var(r.F(0))
}

// rowAt returns the first word of row i of A, or of the last row.
func (r *rowProduct) rowAt(i devgen.Value) devgen.Value {
	return r.Mul(r.Min(r.Add(r.row0, i), r.Sub(r.m, r.U(1))), r.aStride)
}

// act returns word `offset` of block s of a row of A.
func (r *rowProduct) act(row, s devgen.Value, offset int) devgen.Value {
	return r.Add(row, r.Mul(s, r.U(kernel.ActQ8Bytes/b32)), r.U(offset/b32))
}

// place returns the word of entry `list` of a shared array of lists of all invocations.
func (r *rowProduct) place(list int) devgen.Value {
	return r.Add(r.Builtin(devgen.LocalIndex), r.U(list*rowGEMM))
}

// panelOf returns the column of a weight's panel.
func (r *rowProduct) panelOf(weight int) panel {
	return panel{Builder: r.Builder, d: r.d, column: r.column, table: r.table,
		load: func(word devgen.Value) devgen.Value { return r.Load(r.w[weight], r.Add(r.panel, word)) }}
}

// sums writes the integer sums of this invocation's block, and its scales. Beyond the last block
// it repeats the last one, which the chains ignore.
func (r *rowProduct) sums(first devgen.Value) {
	s := r.Min(r.Add(first, r.slice), r.Sub(r.blocks, r.U(1)))
	spans := r.spans()
	groups := qtype.SubBlockK / 4 / spans
	words := make([][qtype.SubBlockK / 4]devgen.Value, len(r.w))
	for w := range r.w {
		p := r.panelOf(w)
		sub := p.subBlock(s)
		for g, u := range p.numbers(sub) {
			words[w][g] = p.signed(u)
		}
		for n := range spans {
			scale, offset := p.scales(sub, n)
			r.StoreShared(r.scales, r.place(w*spans+n), scale)
			if r.d.Affine() {
				r.StoreShared(r.offsets, r.place(w), offset)
			}
		}
	}
	for row := range r.g.Rows {
		at := r.rowAt(r.U(row))
		var q [qtype.SubBlockK / 4]devgen.Value
		for g := range q {
			q[g] = r.Load(r.a, r.act(at, s, kernel.ActQ+4*g))
		}
		for w := range words {
			for n := range spans {
				dot := r.U(0)
				for g := n * groups; g < (n+1)*groups; g++ {
					dot = r.Dot4(q[g], words[w][g], dot)
				}
				r.StoreShared(r.dots, r.place((row*len(r.w)+w)*spans+n), r.FromInt(dot))
			}
		}
	}
}

// chains adds the sums of sixteen blocks to the chains.
func (r *rowProduct) chains(first devgen.Value) {
	weights, spans := len(r.w), r.spans()
	r.If(r.Less(r.slice, r.U(r.g.Rows*weights)), func() {
		weight, row := r.Rem(r.slice, r.U(weights)), r.Div(r.slice, r.U(weights))
		at := r.rowAt(row)
		superblocks := r.g.Path == kernel.ComputeInt8Superblock
		const blocks = kernel.ActQ8Group / kernel.ActQ8Block
		for i := range rowSlices {
			s := r.Add(first, r.U(i))
			r.If(r.Less(s, r.blocks), func() {
				actScale := r.LoadF(r.a, r.act(at, s, kernel.ActScale))
				sum := r.acc
				if superblocks {
					sum = r.sum
				}
				place := func(list devgen.Value) devgen.Value {
					return r.Add(r.Mul(list, r.U(rowGEMM)), r.column, r.U(i*qtype.PanelWidth))
				}
				for n := range spans {
					scale := r.LoadSharedF(r.scales, place(r.Add(r.Mul(weight, r.U(spans)), r.U(n))))
					if !superblocks {
						scale = r.FMul(scale, actScale)
					}
					dot := r.LoadSharedF(r.dots, place(r.Add(r.Mul(r.slice, r.U(spans)), r.U(n))))
					r.Set(sum, r.FMA(dot, scale, r.Get(sum)))
				}
				if r.d.Affine() {
					offset := r.LoadSharedF(r.offsets, place(weight))
					r.Set(sum, r.FMA(r.LoadF(r.a, r.act(at, s, kernel.ActSum)), offset, r.Get(sum)))
				}
				if superblocks && i%blocks == blocks-1 {
					r.Set(r.acc, r.FMA(r.Get(r.sum), actScale, r.Get(r.acc)))
					r.Set(r.sum, r.F(0))
				}
			})
		}
	})
}

// finishRows writes the results: one invocation has the sums of all weights of an element.
func (r *rowProduct) finishRows() {
	weights := len(r.w)
	r.If(r.Less(r.slice, r.U(r.g.Rows*weights)), func() { r.StoreShared(r.dots, r.place(0), r.Get(r.acc)) })
	r.Barrier()
	row := r.Add(r.row0, r.slice)
	column := r.MulAdd(r.Builtin(devgen.GroupX), r.U(qtype.PanelWidth), r.column)
	inside := r.AndBool(r.Less(row, r.m), r.Less(column, r.n))
	r.If(r.AndBool(r.Less(r.slice, r.U(r.g.Rows)), inside), func() {
		var sums []devgen.Value
		for w := range weights {
			chain := r.MulAdd(r.slice, r.U(weights), r.U(w))
			sums = append(sums, r.LoadSharedF(r.dots, r.MulAdd(chain, r.U(qtype.PanelWidth), r.column)))
		}
		r.finish(row, column, sums)
	})
}
