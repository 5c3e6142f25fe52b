package kernels

import (
	"sandwich/microkernel/devgen"
	"sandwich/microkernel/internal/kernel"
	"sandwich/microkernel/qtype"
)

// offsetBlocks is the number of blocks of 32 k whose offsets are in shared memory: a superblock,
// and the next one.
const offsetBlocks = 2 * kernel.ActQ8Group / kernel.ActQ8Block

// storeIntegers writes the integer scales and offsets of a column of the tile in block s for path
// int8-k, the scales from word `at` on.
func (t *tensor) storeIntegers(p *panel, s, at, column devgen.Value) {
	offsets := t.U(0)
	for n := range t.spans() {
		scale, offset := p.integerScales(t.sub(), n)
		t.StoreShared(t.scales, t.Add(at, t.U(n*t.tileColumns())), scale)
		switch {
		case !t.d.Affine():
		case t.spans() == 1:
			offsets = t.Or(offset, t.Shl(offset, t.U(8)))
		default:
			offsets = t.Or(offsets, t.Shl(offset, t.U(8*n)))
		}
	}
	if t.d.Affine() {
		t.StoreShared(t.offsets, t.MulAdd(t.Rem(s, t.U(offsetBlocks)), t.U(t.tileColumns()), column), offsets)
	}
}

// addIntegers adds the products of eight columns in block s, times their scales, to the sums. first
// is the column of the tile whose products the invocation has.
func (t *tensor) addIntegers(s, first devgen.Value, words *[2]devgen.Value, rows []rowsOf, sums []devgen.Var) {
	zero := t.U(0)
	at := t.MulAdd(t.And(s, t.U(1)), t.U(t.scaleWords()), first)
	for n := range t.spans() {
		var scale [2]devgen.Value
		for c := range scale {
			scale[c] = t.LoadShared(t.scales, t.Add(at, t.U(n*t.tileColumns()+c)))
		}
		for i := range rows {
			a, w := t.fragments(&rows[i], words, n)
			for e, dot := range t.MMA(a, w, []devgen.Value{zero, zero, zero, zero}) {
				t.Set(sums[4*i+e], t.MulAdd(dot, scale[e%2], t.Get(sums[4*i+e])))
			}
		}
	}
}

// superblockRows has the operands of a tile of 16 rows in a superblock: the scales of rows g and
// g+8, and fragments of their half sums, as high*128 + low.
type superblockRows struct {
	scale     [2]devgen.Value
	high, low []devgen.Value
}

// superblockRows reads the operands of tile i of the rows in a superblock.
func (t *tensor) superblockRows(superblock devgen.Value, i int) (r superblockRows) {
	for h := range r.scale {
		row := t.Min(t.Add(t.row0, t.group, t.U(16*i+8*h)), t.Sub(t.m, t.U(1)))
		at := t.MulAdd(row, t.aStride, t.Mul(superblock, t.U(superblockWords)))
		r.scale[h] = t.LoadF(t.a, t.Add(at, t.U(superblockScale)))
		if !t.d.Affine() {
			continue
		}
		at = t.Add(at, t.Shl(t.lane4, t.U(1)), t.U(superblockHalves))
		first, second := t.Load(t.a, at), t.Load(t.a, t.Add(at, t.U(1)))
		r.high = append(r.high, t.highs(first, second))
		r.low = append(r.low, t.lows(first, second))
	}
	return r
}

// highs returns bits 7 to 14 of the four half sums of two words, as signed bytes. Half sums have
// twelve bits.
func (t *tensor) highs(first, second devgen.Value) devgen.Value {
	return t.Or(t.Or(t.Field(first, 7, 8), t.And(t.Shr(first, t.U(15)), t.U(0xff00))),
		t.Or(t.And(t.Shl(second, t.U(9)), t.U(0xff0000)), t.And(t.Shl(second, t.U(1)), t.U(0xff000000))))
}

// lows returns the low seven bits of the four half sums of two words.
func (t *tensor) lows(first, second devgen.Value) devgen.Value {
	return t.Or(t.Or(t.And(first, t.U(0x7f)), t.And(t.Shr(first, t.U(8)), t.U(0x7f00))),
		t.Or(t.And(t.Shl(second, t.U(16)), t.U(0x7f0000)), t.And(t.Shl(second, t.U(8)), t.U(0x7f000000))))
}

// offsetSums returns the sums of a superblock over offsets times half sums, of the products that
// the invocation has of eight columns.
func (t *tensor) offsetSums(superblock, column devgen.Value, r *superblockRows) []devgen.Value {
	blocks := t.MulAdd(t.And(superblock, t.U(1)), t.U(superblockBlocks), t.Shl(t.lane4, t.U(1)))
	at := t.MulAdd(blocks, t.U(t.tileColumns()), column)
	word := t.Or(t.LoadShared(t.offsets, at),
		t.Shl(t.LoadShared(t.offsets, t.Add(at, t.U(t.tileColumns()))), t.U(16)))
	zero := t.U(0)
	sums := []devgen.Value{zero, zero, zero, zero}
	for e, high := range t.MMA(r.high, []devgen.Value{word}, sums) {
		sums[e] = t.Shl(high, t.U(7))
	}
	return t.MMA(r.low, []devgen.Value{word}, sums)
}

// flushIntegers adds the sums of the superblock that ends with block s to the chains.
func (t *tensor) flushIntegers(s devgen.Value) {
	superblock := t.Div(s, t.U(superblockBlocks))
	rows := make([]superblockRows, t.rowTiles())
	for i := range rows {
		rows[i] = t.superblockRows(superblock, i)
	}
	next := 0
	for weight := range t.w {
		for panel := range t.warpPanels {
			for half := range 2 {
				which := t.Add(t.warpPanel, t.U(weight*t.tilePanels()+panel))
				t.flushColumns(s, superblock, which, half, rows, next)
				next += 4 * len(rows)
			}
		}
	}
}

// flushColumns is flushIntegers for eight columns of a panel, whose sums begin with number `next`.
func (t *tensor) flushColumns(s, superblock, which devgen.Value, half int, rows []superblockRows, next int) {
	var scales [2][2]devgen.Value // by scale of the block and column
	for c := range 2 {
		p := t.panelAt(t.Rem(s, t.U(stages)), which, t.Add(t.Shl(t.lane4, t.U(1)), t.U(8*half+c)))
		for n := range t.d.BlockScales {
			scales[n][c] = p.blockScale(t.sub(), n)
		}
	}
	column := t.MulAdd(which, t.U(qtype.PanelWidth), t.Add(t.group, t.U(8*half)))
	for i := range rows {
		r := &rows[i]
		var offsets []devgen.Value
		if t.d.Affine() {
			offsets = t.offsetSums(superblock, column, r)
		}
		for e := range 4 {
			acc, sum := t.acc[next+4*i+e], t.sums[next+4*i+e]
			x := t.FMA(t.FromInt(t.Get(sum)), t.FMul(scales[0][e%2], r.scale[e/2]), t.Get(acc))
			if t.d.Affine() {
				x = t.FMA(t.FNeg(t.FromInt(offsets[e])), t.FMul(scales[1][e%2], r.scale[e/2]), x)
			}
			t.Set(acc, x)
			t.Set(sum, t.U(0))
		}
	}
}
