package kernels

import (
	"sandwich/microkernel/devgen"
	"sandwich/microkernel/qtype"
)

// integerSums is sums for path int8-k: it writes the integer sum of this invocation's block, that
// of its offsets, and the scales of superblocks.
func (r *rowProduct) integerSums(first devgen.Value) {
	s := r.Min(r.Add(first, r.slice), r.Sub(r.blocks, r.U(1)))
	superblock, block := r.Div(s, r.U(superblockBlocks)), r.Rem(s, r.U(superblockBlocks))
	columns := make([]integerColumn, len(r.w))
	for w := range r.w {
		p := r.panelOf(w)
		sub := p.subBlock(s)
		columns[w] = p.integerColumn(sub)
		r.If(r.Equal(block, r.U(0)), func() {
			for n := range r.d.BlockScales {
				r.StoreShared(r.scales, r.place(w*len(r.d.BlockScales)+n), p.blockScale(sub, n))
			}
		})
	}
	for row := range r.g.Rows {
		at := r.MulAdd(superblock, r.U(superblockWords), r.rowAt(r.U(row)))
		var q [qtype.SubBlockK / 4]devgen.Value
		for g := range q {
			q[g] = r.Load(r.a, r.Add(r.MulAdd(block, r.U(qtype.SubBlockK/b32), at), r.U(g)))
		}
		for w := range columns {
			r.StoreShared(r.dots, r.place(row*len(r.w)+w), columns[w].product(r.Builder, &q))
		}
		if !r.d.Affine() {
			continue
		}
		word := r.Load(r.a, r.Add(at, block, r.U(superblockHalves)))
		for w := range columns {
			r.StoreShared(r.offsets, r.place(row*len(r.w)+w), columns[w].offset(r.Builder, word))
		}
	}
}

// integerChains adds the sums of two superblocks to the chains.
func (r *rowProduct) integerChains(first devgen.Value) {
	weights, scales := len(r.w), len(r.d.BlockScales)
	r.If(r.Less(r.slice, r.U(r.g.Rows*weights)), func() {
		weight, row := r.Rem(r.slice, r.U(weights)), r.Div(r.slice, r.U(weights))
		at := r.rowAt(row)
		for i := 0; i < rowSlices; i += superblockBlocks {
			s := r.Add(first, r.U(i))
			r.If(r.Less(s, r.blocks), func() {
				superblock := r.Div(s, r.U(superblockBlocks))
				act := r.LoadF(r.a, r.Add(r.MulAdd(superblock, r.U(superblockWords), at), r.U(superblockScale)))
				entry := func(list devgen.Value, block int) devgen.Value {
					return r.Add(r.Mul(list, r.U(rowGEMM)), r.column, r.U((i+block)*qtype.PanelWidth))
				}
				add := func(from devgen.Array, sign func(devgen.Value) devgen.Value, n int) {
					sum := r.U(0)
					for block := range superblockBlocks {
						sum = r.Add(sum, r.LoadShared(from, entry(r.slice, block)))
					}
					scale := r.LoadSharedF(r.scales, entry(r.MulAdd(weight, r.U(scales), r.U(n)), 0))
					r.Set(r.acc, r.FMA(sign(nearest(r.Builder, sum)), r.FMul(scale, act), r.Get(r.acc)))
				}
				add(r.dots, func(x devgen.Value) devgen.Value { return x }, 0)
				if r.d.Affine() {
					add(r.offsets, r.FNeg, 1)
				}
			})
		}
	})
}
