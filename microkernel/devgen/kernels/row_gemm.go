package kernels

import (
	"fmt"

	"sandwich/microkernel/devgen"
	"sandwich/microkernel/internal/kernel"
	"sandwich/microkernel/qtype"
)

// RowGEMM is a GEMM by integer paths for few rows, with the same bindings, push words and bits.
// Rows is the number of rows of a workgroup, 1 to 4. Panels is not used.
//
// A workgroup computes one panel in rounds of some blocks of k. Most invocations compute the
// integer sums of the blocks of a round, so that many loads are in flight. At the same time the
// others add the sums of the round before, in order, to the chains: one for each row, weight and
// column. Two buffers in shared memory hold the sums.
type RowGEMM GEMM

const (
	rowSlices  = 16 // most blocks of k whose sums are computed at a time
	maxRowGEMM = 4  // rows of a workgroup
	warp       = 32 // invocations that a device runs together; a multiple keeps the roles apart
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
	case g.Rows < 1 || g.Rows > maxRowGEMM:
		return nil, fmt.Errorf("device product: %d rows per workgroup; use 1 to %d", g.Rows, maxRowGEMM)
	}
	r := newRowProduct(g)
	sums, chains := r.sums, r.chains
	if g.Path == kernel.ComputeInt8K {
		sums, chains = r.integerSums, r.integerChains
	}
	round := r.U(r.round)
	r.For(r.U(0), r.Add(r.blocks, round), round, func(first devgen.Value) {
		half := r.And(r.Div(first, round), r.U(1))
		r.If(r.AndBool(r.loads, r.Less(first, r.blocks)), func() { sums(first, half) })
		r.If(r.AndBool(r.adds, r.Not(r.Less(first, round))), func() {
			chains(r.Sub(first, round), r.Xor(half, r.U(1)))
		})
		r.Barrier()
	})
	r.finishRows()
	r.FewGroups()
	return r.Build()
}

// rowProduct is a RowGEMM in construction.
type rowProduct struct {
	*product
	rowLayout
	slice, column devgen.Value // of the invocation: a block of a round, or a chain; a column of the panel
	loads, adds   devgen.Value // whether the invocation computes sums, or adds them to chain number `slice`
	blocks        devgen.Value // of k
	panel         devgen.Value // first word of the panel
	row0          devgen.Value

	// Arrays of the lists of rowLayout. Scales are those of weights, acts those of activations.
	// Of path int8-k dots and offsets have integers.
	dots, scales, offsets, acts, actSums devgen.Array
	table                                devgen.Array // see newCodebook
	acc                                  devgen.Var   // chain of the invocation: row*weights + weight
	sum                                  devgen.Var   // chain of a superblock
}

// rowLayout says what the invocations of a workgroup do and which lists they exchange. A list has a
// word for each block of a round and each column.
type rowLayout struct {
	d              *qtype.Desc
	round          int // blocks of k
	slices         int // of them, whose sums are computed at a time
	loaders, size  int // invocations that compute sums; all
	chainCount     int
	dotLists       int
	scaleLists     int
	offsetLists    int
	actLists       int
	activationSums int
}

// newRowLayout returns the layout with the longest rounds that leave shared memory for several
// workgroups of a processor.
func newRowLayout(g RowGEMM, weights int) (l rowLayout) {
	l.d = g.Weight.Desc()
	l.chainCount = g.Rows * weights
	spans := qtype.SubBlockK / l.d.Span()
	l.dotLists, l.scaleLists, l.actLists = l.chainCount*spans, weights*spans, g.Rows
	if g.Path == kernel.ComputeInt8K {
		l.dotLists, l.scaleLists = l.chainCount, weights*len(l.d.BlockScales)
	}
	switch {
	case !l.d.Affine():
	case g.Path == kernel.ComputeInt8K:
		l.offsetLists = l.chainCount
	default:
		l.offsetLists, l.activationSums = weights, g.Rows
	}
	const several, one = 16 << 10, 32 << 10 // bytes that leave room for several workgroups, or for one
	l.round = 2 * rowSlices
	for l.bytes() > several && l.round > rowSlices || l.bytes() > one && l.round > superblockBlocks {
		l.round /= 2
	}
	l.slices = min(l.round, rowSlices)
	l.loaders = l.slices * qtype.PanelWidth
	l.size = l.loaders + ceil(l.chainCount*qtype.PanelWidth, warp)*warp
	return l
}

// listWords returns the words of a list in one half of its array.
func (l *rowLayout) listWords() int { return l.round * qtype.PanelWidth }

func (l *rowLayout) bytes() int {
	lists := l.dotLists + l.scaleLists + l.offsetLists + l.actLists + l.activationSums
	return 2 * b32 * lists * l.listWords()
}

func newRowProduct(g RowGEMM) *rowProduct {
	weights := 1
	if g.Epilogue == Gated {
		weights = 2
	}
	l := newRowLayout(g, weights)
	r := &rowProduct{product: newProduct(GEMM(g), "rows", l.size), rowLayout: l}
	local := r.Builtin(devgen.LocalIndex)
	r.column = r.And(local, r.U(qtype.PanelWidth-1))
	r.loads = r.Less(local, r.U(l.loaders))
	r.slice = r.Shr(r.Select(r.loads, local, r.Sub(local, r.U(l.loaders))), r.U(4))
	r.adds = r.AndBool(r.Not(r.loads), r.Less(r.slice, r.U(l.chainCount)))
	r.panel = r.Mul(r.Builtin(devgen.GroupX), r.wStride)
	r.row0 = r.Mul(r.Builtin(devgen.GroupY), r.U(r.g.Rows))
	r.blocks = r.Shr(r.k, r.U(5))
	array := func(name string, lists int) (a devgen.Array) {
		if lists > 0 {
			a = r.Shared(name, 2*lists*l.listWords())
		}
		return a
	}
	r.dots, r.scales = array("dots", l.dotLists), array("scales", l.scaleLists)
	r.offsets, r.acts = array("offsets", l.offsetLists), array("acts", l.actLists)
	r.actSums = array("act_sums", l.activationSums)
	r.table = newCodebook(r.Builder, r.d, l.size)
	r.acc, r.sum = r.Var(r.F(0)), r.Var(r.F(0))
	return r
}

// rowAt returns the first word of row i of A, or of the last row.
func (r *rowProduct) rowAt(i devgen.Value) devgen.Value {
	return r.Mul(r.Min(r.Add(r.row0, i), r.Sub(r.m, r.U(1))), r.aStride)
}

// act returns word `offset` of block s of a row of A.
func (r *rowProduct) act(row, s devgen.Value, offset int) devgen.Value {
	return r.Add(row, r.Mul(s, r.U(kernel.ActQ8Bytes/b32)), r.U(offset/b32))
}

// place returns the word of this invocation's column of a block of a round in a list of one half of
// an array of `lists` lists.
func (r *rowProduct) place(lists int, half, list, block devgen.Value) devgen.Value {
	words := r.U(r.listWords())
	list = r.MulAdd(half, r.U(lists), list)
	return r.Add(r.Mul(list, words), r.MulAdd(block, r.U(qtype.PanelWidth), r.column))
}

// panelOf returns the column of a weight's panel.
func (r *rowProduct) panelOf(weight int) panel {
	return panel{Builder: r.Builder, d: r.d, column: r.column, table: r.table,
		load: func(word devgen.Value) devgen.Value { return r.Load(r.w[weight], r.Add(r.panel, word)) }}
}

// eachBlock calls body with the blocks of a round whose sums this invocation computes: their
// numbers in the round, and among all blocks. Beyond the last block it repeats the last one, which
// the chains ignore.
func (r *rowProduct) eachBlock(first devgen.Value, body func(block, s devgen.Value)) {
	for i := 0; i < r.round; i += r.slices {
		block := r.Add(r.slice, r.U(i))
		body(block, r.Min(r.Add(first, block), r.Sub(r.blocks, r.U(1))))
	}
}

// finishRows writes the results: one invocation has the sums of all weights of an element.
func (r *rowProduct) finishRows() {
	weights := len(r.w)
	chain := func(i devgen.Value) devgen.Value { return r.MulAdd(i, r.U(qtype.PanelWidth), r.column) }
	r.If(r.adds, func() { r.StoreShared(r.dots, chain(r.slice), r.Get(r.acc)) })
	r.Barrier()
	row := r.Add(r.row0, r.slice)
	column := r.MulAdd(r.Builtin(devgen.GroupX), r.U(qtype.PanelWidth), r.column)
	writes := r.AndBool(r.Not(r.loads), r.Less(r.slice, r.U(r.g.Rows)))
	inside := r.AndBool(r.Less(row, r.m), r.Less(column, r.n))
	r.If(r.AndBool(writes, inside), func() {
		var sums []devgen.Value
		for w := range weights {
			sums = append(sums, r.LoadSharedF(r.dots, chain(r.MulAdd(r.slice, r.U(weights), r.U(w)))))
		}
		r.finish(row, column, sums)
	})
}

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
