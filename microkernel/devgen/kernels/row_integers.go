package kernels

import (
	"sandwich/microkernel/devgen"
	"sandwich/microkernel/qtype"
)

// integerSums is sums for path int8-k: it writes the integer sums of this invocation's blocks,
// those of their offsets, and the scales of superblocks.
func (r *rowProduct) integerSums(first, half devgen.Value) {
	r.eachBlock(first, func(number, s devgen.Value) {
		write := func(to devgen.Array, lists, list int, x devgen.Value) {
			r.StoreShared(to, r.place(lists, half, r.U(list), number), x)
		}
		superblock, block := r.Div(s, r.U(superblockBlocks)), r.Rem(s, r.U(superblockBlocks))
		columns := make([]integerColumn, len(r.w))
		for w := range r.w {
			p := r.panelOf(w)
			sub := p.subBlock(s)
			columns[w] = p.integerColumn(sub)
			for n := range r.d.BlockScales {
				write(r.scales, r.scaleLists, w*len(r.d.BlockScales)+n, p.blockScale(sub, n))
			}
		}
		for row := range r.g.Rows {
			at := r.MulAdd(superblock, r.U(superblockWords), r.rowAt(r.U(row)))
			var q [qtype.SubBlockK / 4]devgen.Value
			for g := range q {
				q[g] = r.Load(r.a, r.Add(r.MulAdd(block, r.U(qtype.SubBlockK/b32), at), r.U(g)))
			}
			write(r.acts, r.actLists, row, r.Load(r.a, r.Add(at, r.U(superblockScale))))
			for w := range columns {
				write(r.dots, r.dotLists, row*len(r.w)+w, columns[w].product(r.Builder, &q))
			}
			if !r.d.Affine() {
				continue
			}
			word := r.Load(r.a, r.Add(at, block, r.U(superblockHalves)))
			for w := range columns {
				write(r.offsets, r.offsetLists, row*len(r.w)+w, columns[w].offset(r.Builder, word))
			}
		}
	})
}

// integerChains adds the sums of the superblocks of a round to the chain of this invocation.
func (r *rowProduct) integerChains(first, half devgen.Value) {
	weights, scales := len(r.w), len(r.d.BlockScales)
	weight, row := r.Rem(r.slice, r.U(weights)), r.Div(r.slice, r.U(weights))
	for i := 0; i < r.round; i += superblockBlocks {
		present := r.Less(r.Add(first, r.U(i)), r.blocks)
		act := r.LoadSharedF(r.acts, r.place(r.actLists, half, row, r.U(i)))
		add := func(from devgen.Array, lists int, sign func(devgen.Value) devgen.Value, n int) {
			sum := r.U(0)
			for block := range superblockBlocks {
				sum = r.Add(sum, r.LoadShared(from, r.place(lists, half, r.slice, r.U(i+block))))
			}
			list := r.MulAdd(weight, r.U(scales), r.U(n))
			scale := r.LoadSharedF(r.scales, r.place(r.scaleLists, half, list, r.U(i)))
			x := r.FMA(sign(nearest(r.Builder, sum)), r.FMul(scale, act), r.Get(r.acc))
			r.Set(r.acc, r.Select(present, x, r.Get(r.acc)))
		}
		add(r.dots, r.dotLists, func(x devgen.Value) devgen.Value { return x }, 0)
		if r.d.Affine() {
			add(r.offsets, r.offsetLists, r.FNeg, 1)
		}
	}
}
