package kernels

import (
	"fmt"

	"sandwich/microkernel/devgen"
	"sandwich/microkernel/internal/kernel"
	"sandwich/microkernel/qtype"
)

// TensorGEMM is a GEMM by integer paths on tensor cores, with the same bindings, push words and
// bits. Rows is the number of rows of a workgroup: 16, 32, 48 or 64. Panels is not used. a_stride
// is a multiple of four.
//
// The tiles of a workgroup pass through shared memory in stages of 32 k, which are copied
// asynchronously ahead of use. While a block of 32 is multiplied, the scales of the next are
// converted to float32, each by one invocation. Each block is summed exactly by one multiplication
// of fragments (two, if weights have a scale for 16 k), then added to the chain by one FMA, or for
// path int8-k multiplied by its integer scale and added to the sum of the superblock.
type TensorGEMM GEMM

const (
	tensorSize  = 128
	tensorWarps = 4 // of a workgroup, along the columns
	stages      = 4

	maxTensorRows = 64
	actWords      = kernel.ActQ8Bytes / b32
	chunk         = 4 // words of an asynchronous copy
)

// warpPanels returns the panels of each weight that a warp computes.
func (g TensorGEMM) warpPanels() int {
	if g.Epilogue == Gated {
		return 1
	}
	return 2
}

// Grid returns the workgroups of a product of m rows and n columns.
func (g TensorGEMM) Grid(m, n int) [3]int {
	return [3]int{ceil(n, g.warpPanels()*tensorWarps*qtype.PanelWidth), ceil(m, g.Rows), 1}
}

// Kernel builds the kernel.
func (g TensorGEMM) Kernel() (*devgen.Kernel, error) {
	if err := GEMM(g).check(); err != nil {
		return nil, err
	}
	switch {
	case g.Path == kernel.ComputeF32:
		return nil, fmt.Errorf("device product: tensor cores do not compute path %s", g.Path)
	case g.Rows%16 != 0 || g.Rows < 16 || g.Rows > maxTensorRows:
		return nil, fmt.Errorf("device product: %d rows per workgroup on tensor cores; use 16, 32, 48 or 64", g.Rows)
	}
	t := tensor{product: newProduct(GEMM(g), "tensor", tensorSize), d: g.Weight.Desc(), warpPanels: g.warpPanels()}
	t.locate()
	t.run()
	t.write()
	return t.Build()
}

// tensor is a TensorGEMM in construction.
type tensor struct {
	*product
	d          *qtype.Desc
	warpPanels int

	blocks       devgen.Value // of 32 k
	group, lane4 devgen.Value // lane/4 and lane%4 of a warp
	warpPanel    devgen.Value // first panel of the warp in the tile
	row0         devgen.Value // first row of the tile
	panel0       devgen.Value // first panel of the tile

	aTile, wTile devgen.Array
	scales       devgen.Array // [block mod 2][scale or offset][span][column of the tile]
	offsets      devgen.Array // of path int8-k: [block mod 16][column of the tile], one byte per 16 k
	table        devgen.Array // see newCodebook
	copies       []transfer
	acc          []devgen.Var // [weight][panel][half][row tile][4]
	sums         []devgen.Var // of the superblock, integers for path int8-k; acc for path int8
}

// subWords returns the words of a panel in a stage: the scales of a block and one sub-block.
func (t *tensor) subWords() int { return (t.d.HeadBytes() + t.d.SubBlockBytes()) / b32 }

// rowTiles returns the tiles of 16 rows; each warp computes all of them.
func (t *tensor) rowTiles() int { return t.g.Rows / 16 }

// tilePanels returns the panels of each weight in the tile.
func (t *tensor) tilePanels() int { return t.warpPanels * tensorWarps }

// tileColumns returns the columns of all weights in the tile.
func (t *tensor) tileColumns() int { return len(t.w) * t.tilePanels() * qtype.PanelWidth }

// spans returns the scales of a column in a block of 32.
func (t *tensor) spans() int { return qtype.SubBlockK / t.d.Span() }

// scaleWords returns the words of the scales and offsets of a block.
func (t *tensor) scaleWords() int {
	lists := t.spans()
	if t.d.Affine() && t.g.Path != kernel.ComputeInt8K {
		lists *= 2
	}
	return lists * t.tileColumns()
}

// locate computes the place of the workgroup, the warp and the invocation, and their copies.
func (t *tensor) locate() {
	local := t.Builtin(devgen.LocalIndex)
	warp, lane := t.Shr(local, t.U(5)), t.And(local, t.U(31))
	t.group, t.lane4 = t.Shr(lane, t.U(2)), t.And(lane, t.U(3))
	t.warpPanel = t.Mul(warp, t.U(t.warpPanels))
	t.row0 = t.Mul(t.Builtin(devgen.GroupY), t.U(t.g.Rows))
	t.panel0 = t.Mul(t.Builtin(devgen.GroupX), t.U(t.tilePanels()))
	t.blocks = t.Shr(t.k, t.U(5))
	t.aTile = t.Shared("a_tile", stages*t.g.Rows*actWords)
	t.wTile = t.Shared("w_tile", stages*len(t.w)*t.tilePanels()*t.subWords())
	t.scales = t.Shared("scales", 2*t.scaleWords())
	if t.d.Affine() && t.g.Path == kernel.ComputeInt8K {
		t.offsets = t.Shared("offsets", offsetBlocks*t.tileColumns())
	}
	t.table = newCodebook(t.Builder, t.d, tensorSize)
	t.planActivations(local)
	for i := range t.w {
		t.planWeights(local, i)
	}
	accumulators := len(t.w) * t.warpPanels * 2 * t.rowTiles() * 4
	t.acc = t.vars(accumulators, t.F(0))
	switch t.g.Path {
	case kernel.ComputeInt8:
		t.sums = t.acc
	case kernel.ComputeInt8K:
		t.sums = t.vars(accumulators, t.U(0))
	default:
		t.sums = t.vars(accumulators, t.F(0))
	}
}

// run walks the blocks of k.
func (t *tensor) run() {
	const ahead = stages - 1
	for s := range ahead {
		t.issue(t.U(s))
	}
	t.WaitAsync(ahead - 1)
	t.Barrier()
	t.convertScales(t.U(0))
	t.Range(t.blocks, func(s devgen.Value) {
		t.WaitAsync(ahead - 2)
		t.Barrier()
		t.issue(t.Add(s, t.U(ahead)))
		next := t.Add(s, t.U(1))
		t.If(t.Less(next, t.blocks), func() { t.convertScales(next) })
		t.block(s)
	})
}

// panelAt returns a column of panel `which` of the tile in a stage.
func (t *tensor) panelAt(stage, which, column devgen.Value) panel {
	first := t.Mul(t.MulAdd(stage, t.U(len(t.w)*t.tilePanels()), which), t.U(t.subWords()))
	return panel{Builder: t.Builder, d: t.d, column: column, table: t.table,
		load: func(word devgen.Value) devgen.Value { return t.LoadShared(t.wTile, t.Add(first, word)) }}
}

// sub returns the place of the scales and the numbers of a panel in the tile.
func (t *tensor) sub() subBlock { return subBlock{t.U(0), t.U(t.d.HeadBytes() / b32)} }

// convertScales writes the scales and offsets of block s.
func (t *tensor) convertScales(s devgen.Value) {
	stage, to := t.Rem(s, t.U(stages)), t.Mul(t.And(s, t.U(1)), t.U(t.scaleWords()))
	columns := t.tileColumns()
	for first := 0; first < columns; first += tensorSize {
		column := t.Add(t.Builtin(devgen.LocalIndex), t.U(first))
		t.If(t.Less(column, t.U(columns)), func() {
			p := t.panelAt(stage, t.Shr(column, t.U(4)), t.And(column, t.U(qtype.PanelWidth-1)))
			if t.g.Path == kernel.ComputeInt8K {
				t.storeIntegers(&p, s, t.Add(to, column), column)
				return
			}
			for n := range t.spans() {
				scale, offset := p.scales(t.sub(), n)
				at := t.Add(to, column)
				t.StoreShared(t.scales, t.Add(at, t.U(n*columns)), scale)
				if t.d.Affine() {
					t.StoreShared(t.scales, t.Add(at, t.U((t.spans()+n)*columns)), offset)
				}
			}
		})
	}
}

// rowsOf has the operands of a tile of 16 rows: fragments, and the scales and sums of rows g and
// g+8.
type rowsOf struct {
	a          [4]devgen.Value
	scale, sum [2]devgen.Value
}

// block adds block s to the chains.
func (t *tensor) block(s devgen.Value) {
	stage := t.Rem(s, t.U(stages))
	rows := make([]rowsOf, t.rowTiles())
	for i := range rows {
		rows[i] = t.rowsAt(stage, i)
	}
	next := 0
	for weight := range t.w {
		for panel := range t.warpPanels {
			for half := range 2 {
				t.columns(s, weight, panel, half, rows, t.sums[next:])
				next += 4 * len(rows)
			}
		}
	}
	if t.g.Path == kernel.ComputeInt8 {
		return
	}
	t.If(t.Equal(t.And(s, t.U(superblockBlocks-1)), t.U(superblockBlocks-1)), func() {
		if t.g.Path == kernel.ComputeInt8K {
			t.flushIntegers(s)
			return
		}
		t.flush(rows)
	})
}

// rowsAt loads the operands of tile i of the rows.
func (t *tensor) rowsAt(stage devgen.Value, i int) (r rowsOf) {
	for h := range 2 {
		row := t.Add(t.group, t.U(16*i+8*h))
		at := t.MulAdd(stage, t.U(t.g.Rows*actWords), t.Mul(row, t.U(actWords)))
		word := func(n int, more devgen.Value) devgen.Value { return t.Add(t.Add(at, more), t.U(n)) }
		if t.g.Path == kernel.ComputeInt8K {
			r.a[h], r.a[2+h] = t.LoadShared(t.aTile, word(0, t.lane4)), t.LoadShared(t.aTile, word(4, t.lane4))
			continue
		}
		r.a[h] = t.LoadShared(t.aTile, word(kernel.ActQ/b32, t.lane4))
		r.a[2+h] = t.LoadShared(t.aTile, word(kernel.ActQ/b32+4, t.lane4))
		r.scale[h] = t.LoadSharedF(t.aTile, word(kernel.ActScale/b32, t.U(0)))
		if t.d.Affine() {
			r.sum[h] = t.LoadSharedF(t.aTile, word(kernel.ActSum/b32, t.U(0)))
		}
	}
	return r
}

// columns adds eight columns of all rows of the tile to the chains.
func (t *tensor) columns(s devgen.Value, weight, panelIndex, half int, rows []rowsOf, sums []devgen.Var) {
	which := t.Add(t.warpPanel, t.U(weight*t.tilePanels()+panelIndex))
	p := t.panelAt(t.Rem(s, t.U(stages)), which, t.Add(t.group, t.U(8*half)))
	words := [2]devgen.Value{t.numbers(&p, t.sub(), 0), t.numbers(&p, t.sub(), 1)}
	first := t.MulAdd(which, t.U(qtype.PanelWidth), t.Add(t.Shl(t.lane4, t.U(1)), t.U(8*half)))
	if t.g.Path == kernel.ComputeInt8K {
		t.addIntegers(s, first, &words, rows, sums)
		return
	}
	scale, offset := t.converted(s, first)
	for i := range rows {
		for n := range t.spans() {
			a, w := t.fragments(&rows[i], &words, n)
			for e, dot := range t.dots(a, w) {
				t.add(sums[4*i+e], dot, &rows[i], e/2, scale[n][e%2], offset[n][e%2])
			}
		}
	}
}

// fragments returns the operands of the product of span n.
func (t *tensor) fragments(r *rowsOf, words *[2]devgen.Value, n int) (a, w []devgen.Value) {
	if t.spans() == 2 {
		return r.a[2*n : 2*n+2], words[n : n+1]
	}
	return r.a[:], words[:]
}

// converted returns the scales and offsets, by span, of two columns of the tile in block s.
func (t *tensor) converted(s, column devgen.Value) (scale, offset [2][2]devgen.Value) {
	at := t.MulAdd(t.And(s, t.U(1)), t.U(t.scaleWords()), column)
	list := func(n, c int) devgen.Value { return t.LoadSharedF(t.scales, t.Add(at, t.U(n*t.tileColumns()+c))) }
	for n := range t.spans() {
		for c := range 2 {
			scale[n][c] = list(n, c)
			if t.d.Affine() {
				offset[n][c] = list(t.spans()+n, c)
			}
		}
	}
	return scale, offset
}

// add adds a sum of products to a chain.
func (t *tensor) add(sum devgen.Var, dot devgen.Value, r *rowsOf, half int, scale, offset devgen.Value) {
	if t.g.Path == kernel.ComputeInt8 {
		scale = t.FMul(scale, r.scale[half])
	}
	x := t.FMA(dot, scale, t.Get(sum))
	if t.d.Affine() {
		x = t.FMA(r.sum[half], offset, x)
	}
	t.Set(sum, x)
}

// dots returns the products of fragments as float32.
func (t *tensor) dots(a, w []devgen.Value) (out [4]devgen.Value) {
	zero := t.U(0)
	for e, d := range t.MMA(a, w, []devgen.Value{zero, zero, zero, zero}) {
		out[e] = t.FromInt(d)
	}
	return out
}

// numbers returns the numbers of k 16h + 4*lane4 and the three after it, as signed bytes. Columns
// of every other pair of lines are stored eight columns away.
func (t *tensor) numbers(p *panel, s subBlock, h int) devgen.Value {
	u := t.U(0)
	g := t.Add(t.lane4, t.U(4*h))
	for field := range t.d.Fields {
		bits := t.d.Fields[field].Bits
		groups := t.U(8 / bits)
		plane, _ := t.d.Place(0, field)
		line := t.Div(g, groups)
		inAll := t.Add(line, t.U((plane-t.d.SubBytes())/b32/qtype.PanelWidth))
		column := t.Xor(p.column, t.Shl(t.And(inAll, t.U(2)), t.U(2)))
		word := p.load(t.Add(s.at, t.U(plane/b32), t.Mul(line, t.U(qtype.PanelWidth)), column))
		u = t.Or(u, p.digits(word, t.Mul(t.Rem(g, groups), t.U(bits)), field))
	}
	return p.signed(u)
}

// flush adds the sums of a superblock to the chains.
func (t *tensor) flush(rows []rowsOf) {
	for i := range t.acc {
		r := &rows[i/4%len(rows)]
		t.Set(t.acc[i], t.FMA(t.Get(t.sums[i]), r.scale[i%4/2], t.Get(t.acc[i])))
		t.Set(t.sums[i], t.F(0))
	}
}

// write stores the results.
func (t *tensor) write() {
	each := len(t.acc) / len(t.w)
	for i := range each {
		e, row := i%4, i/4%t.rowTiles()
		half, panel := i/4/t.rowTiles()%2, i/8/t.rowTiles()
		r := t.Add(t.row0, t.group, t.U(16*row+e/2*8))
		c := t.Add(t.Mul(t.Add(t.panel0, t.warpPanel, t.U(panel)), t.U(qtype.PanelWidth)),
			t.Shl(t.lane4, t.U(1)), t.U(8*half+e%2))
		t.If(t.AndBool(t.Less(r, t.m), t.Less(c, t.n)), func() {
			var sums []devgen.Value
			for w := range t.w {
				sums = append(sums, t.Get(t.acc[w*each+i]))
			}
			t.finish(r, c, sums)
		})
	}
}
