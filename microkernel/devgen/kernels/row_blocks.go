package kernels

import (
	"sandwich/microkernel/devgen"
	"sandwich/microkernel/internal/kernel"
	"sandwich/microkernel/qtype"
)

// sums writes the sums and scales of this invocation's blocks of a round to a half of the arrays.
func (r *rowProduct) sums(first, half devgen.Value) {
	spans := qtype.SubBlockK / r.d.Span()
	groups := qtype.SubBlockK / 4 / spans
	r.eachBlock(first, func(block, s devgen.Value) {
		write := func(to devgen.Array, lists, list int, x devgen.Value) {
			r.StoreShared(to, r.place(lists, half, r.U(list), block), x)
		}
		words := make([][qtype.SubBlockK / 4]devgen.Value, len(r.w))
		for w := range r.w {
			p := r.panelOf(w)
			sub := p.subBlock(s)
			for g, u := range p.numbers(sub) {
				words[w][g] = p.signed(u)
			}
			for n := range spans {
				scale, offset := p.scales(sub, n)
				write(r.scales, r.scaleLists, w*spans+n, scale)
				if r.d.Affine() {
					write(r.offsets, r.offsetLists, w, offset)
				}
			}
		}
		for row := range r.g.Rows {
			at := r.rowAt(r.U(row))
			var q [qtype.SubBlockK / 4]devgen.Value
			for g := range q {
				q[g] = r.Load(r.a, r.act(at, s, kernel.ActQ+4*g))
			}
			write(r.acts, r.actLists, row, r.Load(r.a, r.act(at, s, kernel.ActScale)))
			if r.d.Affine() {
				write(r.actSums, r.activationSums, row, r.Load(r.a, r.act(at, s, kernel.ActSum)))
			}
			for w := range words {
				for n := range spans {
					dot := r.U(0)
					for g := n * groups; g < (n+1)*groups; g++ {
						dot = r.Dot4(q[g], words[w][g], dot)
					}
					write(r.dots, r.dotLists, (row*len(r.w)+w)*spans+n, r.FromInt(dot))
				}
			}
		}
	})
}

// chains adds the sums of a round to the chain of this invocation.
func (r *rowProduct) chains(first, half devgen.Value) {
	weights, spans := len(r.w), qtype.SubBlockK/r.d.Span()
	weight, row := r.Rem(r.slice, r.U(weights)), r.Div(r.slice, r.U(weights))
	superblocks := r.g.Path == kernel.ComputeInt8Superblock
	chain := r.acc
	if superblocks {
		chain = r.sum
	}
	for i := range r.round {
		read := func(from devgen.Array, lists int, list devgen.Value) devgen.Value {
			return r.LoadSharedF(from, r.place(lists, half, list, r.U(i)))
		}
		present := r.Less(r.Add(first, r.U(i)), r.blocks)
		add := func(to devgen.Var, x, y devgen.Value) {
			r.Set(to, r.Select(present, r.FMA(x, y, r.Get(to)), r.Get(to)))
		}
		act := read(r.acts, r.actLists, row)
		for n := range spans {
			scale := read(r.scales, r.scaleLists, r.MulAdd(weight, r.U(spans), r.U(n)))
			if !superblocks {
				scale = r.FMul(scale, act)
			}
			add(chain, read(r.dots, r.dotLists, r.MulAdd(r.slice, r.U(spans), r.U(n))), scale)
		}
		if r.d.Affine() {
			add(chain, read(r.actSums, r.activationSums, row), read(r.offsets, r.offsetLists, weight))
		}
		if superblocks && i%superblockBlocks == superblockBlocks-1 {
			add(r.acc, r.Get(r.sum), act)
			r.Set(r.sum, r.F(0))
		}
	}
}
