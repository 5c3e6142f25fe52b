package kernels

import (
	"sandwich/microkernel/devgen"
	"sandwich/microkernel/internal/kernel"
	"sandwich/microkernel/qtype"
)

// A superblock of quantized activations of path int8-k, in words.
const (
	superblockBlocks = kernel.ActQ8Group / kernel.ActQ8Block // blocks of 32 k of a superblock
	superblockWords  = kernel.ActQ8KBytes / b32
	superblockScale  = kernel.ActKScale / b32
	superblockHalves = kernel.ActKHalfSums / b32 // word i has the half sums of block i
)

// halves returns the two sums of 16 activations of a word.
func halves(b *devgen.Builder, word devgen.Value) (first, second devgen.Value) {
	return b.Sar(b.Shl(word, b.U(16)), b.U(16)), b.Sar(word, b.U(16))
}

// nearest returns a signed integer as a float32, rounded to nearest even. Its two parts convert
// exactly, so that the result does not depend on how a device rounds conversions.
func nearest(b *devgen.Builder, x devgen.Value) devgen.Value {
	const low = 0xffff
	lower := b.And(x, b.U(low))
	return b.FAdd(b.FromInt(b.Sub(x, lower)), b.FromInt(lower))
}

// integerSums are the sums of a superblock by panel and row: of products, and of offsets.
type integerSums struct{ products, offsets [][]devgen.Var }

// integers adds the chains of path int8-k: the exact integer sum of each superblock, and that of
// its offsets, added by one FMA each with both superblock scales.
func (t *tile) integers() {
	t.Range(t.Shr(t.k, t.U(8)), func(superblock devgen.Value) {
		var sums integerSums
		for range t.acc {
			sums.products = append(sums.products, t.vars(t.g.Rows, t.U(0)))
			if t.g.Weight.Desc().Affine() {
				sums.offsets = append(sums.offsets, t.vars(t.g.Rows, t.U(0)))
			}
		}
		t.Range(t.U(superblockBlocks), func(block devgen.Value) { t.integerBlock(superblock, block, &sums) })
		t.addSuperblock(superblock, &sums)
	})
}

// integerBlock adds a block of 32 k of a superblock to the sums.
func (t *tile) integerBlock(superblock, block devgen.Value, sums *integerSums) {
	columns := make([]integerColumn, len(t.panels))
	for i := range t.panels {
		p := &t.panels[i]
		columns[i] = p.integerColumn(p.subBlock(t.MulAdd(superblock, t.U(superblockBlocks), block)))
	}
	for r, row := range t.rows {
		at := t.MulAdd(superblock, t.U(superblockWords), row)
		var q [qtype.SubBlockK / 4]devgen.Value
		for g := range q {
			q[g] = t.Load(t.a, t.Add(t.MulAdd(block, t.U(qtype.SubBlockK/b32), at), t.U(g)))
		}
		for i := range columns {
			sum := sums.products[i][r]
			t.Set(sum, t.Add(t.Get(sum), columns[i].product(t.Builder, &q)))
		}
		if !t.g.Weight.Desc().Affine() {
			continue
		}
		word := t.Load(t.a, t.Add(at, block, t.U(superblockHalves)))
		for i := range columns {
			sum := sums.offsets[i][r]
			t.Set(sum, t.Add(t.Get(sum), columns[i].offset(t.Builder, word)))
		}
	}
}

// addSuperblock adds the sums of a superblock to the chains.
func (t *tile) addSuperblock(superblock devgen.Value, sums *integerSums) {
	for i := range t.panels {
		p := &t.panels[i]
		head := p.subBlock(t.Mul(superblock, t.U(superblockBlocks)))
		scale := p.blockScale(head, 0)
		for r, row := range t.rows {
			act := t.LoadF(t.a, t.Add(t.MulAdd(superblock, t.U(superblockWords), row), t.U(superblockScale)))
			x := t.FMA(nearest(t.Builder, t.Get(sums.products[i][r])), t.FMul(scale, act), t.Get(t.acc[i][r]))
			if p.d.Affine() {
				offset := t.FNeg(nearest(t.Builder, t.Get(sums.offsets[i][r])))
				x = t.FMA(offset, t.FMul(p.blockScale(head, 1), act), x)
			}
			t.Set(t.acc[i][r], x)
		}
	}
}

// integerColumn is a sub-block of a column as integers: its weights, four k in a word, and the
// scales and offsets of its spans.
type integerColumn struct {
	words           [qtype.SubBlockK / 4]devgen.Value
	scales, offsets []devgen.Value
}

// integerColumn reads a sub-block.
func (p *panel) integerColumn(s subBlock) (c integerColumn) {
	for g, u := range p.numbers(s) {
		c.words[g] = p.signed(u)
	}
	for n := range qtype.SubBlockK / p.d.Span() {
		scale, offset := p.integerScales(s, n)
		c.scales, c.offsets = append(c.scales, scale), append(c.offsets, offset)
	}
	return c
}

// product returns the sum over the spans of scale times dot product.
func (c *integerColumn) product(b *devgen.Builder, q *[qtype.SubBlockK / 4]devgen.Value) devgen.Value {
	groups := len(q) / len(c.scales)
	sum := b.U(0)
	for n, scale := range c.scales {
		dot := b.U(0)
		for g := n * groups; g < (n+1)*groups; g++ {
			dot = b.Dot4(q[g], c.words[g], dot)
		}
		sum = b.MulAdd(dot, scale, sum)
	}
	return sum
}

// offset returns the sum over the spans of offset times sum of activations, given the word with the
// half sums.
func (c *integerColumn) offset(b *devgen.Builder, word devgen.Value) devgen.Value {
	first, second := halves(b, word)
	if len(c.offsets) == 1 {
		return b.Mul(b.Add(first, second), c.offsets[0])
	}
	return b.MulAdd(second, c.offsets[1], b.Mul(first, c.offsets[0]))
}
