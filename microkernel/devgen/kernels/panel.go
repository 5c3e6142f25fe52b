package kernels

import (
	"sandwich/microkernel/devgen"
	"sandwich/microkernel/qtype"
)

// panel reads one column of a packed panel of a quantized type.
type panel struct {
	*devgen.Builder
	d      *qtype.Desc
	load   func(word devgen.Value) devgen.Value // of the panel
	column devgen.Value
	table  devgen.Array // of a type with a codebook, see newCodebook
}

// subBlock is a sub-block of a panel: the words at which its block and it begin.
type subBlock struct{ block, at devgen.Value }

// subBlock returns sub-block s of the column, counted from k = 0.
func (p *panel) subBlock(s devgen.Value) subBlock {
	n := p.d.SubBlocks()
	block := p.Mul(p.Div(s, p.U(n)), p.U(p.d.PanelBytes()/b32))
	at := p.Add(block, p.U(p.d.HeadBytes()/b32))
	if n > 1 {
		at = p.Add(at, p.Mul(p.Rem(s, p.U(n)), p.U(p.d.SubBlockBytes()/b32)))
	}
	return subBlock{block, at}
}

// blockScale returns 16-bit scale n of a block, multiplied by the unit of the type.
func (p *panel) blockScale(s subBlock, n int) devgen.Value {
	word := p.load(p.Add(s.block, p.U(qtype.PanelWidth*n/2), p.Shr(p.column, p.U(1))))
	scale := p.FloatFromHalf(p.half(word, p.column))
	if n > 0 || p.d.Unit == 0 {
		return scale
	}
	return p.FMul(scale, p.F(p.d.Unit))
}

// half returns the half of a word that an even or odd index selects.
func (p *panel) half(word, index devgen.Value) devgen.Value { return halfOf(p.Builder, word, index) }

func halfOf(b *devgen.Builder, word, index devgen.Value) devgen.Value {
	return b.And(b.Shr(word, b.Shl(b.And(index, b.U(1)), b.U(4))), b.U(0xffff))
}

// topByte returns byte n*16 + column of a sub-block in the top byte of a word; the bytes below it
// are undefined.
func (p *panel) topByte(s subBlock, n int) devgen.Value {
	word := p.load(p.Add(s.at, p.U(qtype.PanelWidth*n/b32), p.Shr(p.column, p.U(2))))
	return p.Shl(word, p.Sub(p.U(24), p.Shl(p.And(p.column, p.U(3)), p.U(3))))
}

// scales returns the scale of span n of a sub-block and, of an affine type, the offset.
func (p *panel) scales(s subBlock, n int) (scale, offset devgen.Value) {
	scale = p.blockScale(s, 0)
	unsigned := func(n int) devgen.Value { return p.FromInt(p.Shr(p.topByte(s, n), p.U(24))) }
	switch p.d.Subs {
	case qtype.PairSubs:
		return p.FMul(scale, unsigned(0)), p.FNeg(p.FMul(p.blockScale(s, 1), unsigned(1)))
	case qtype.SignedSubs:
		return p.FMul(scale, p.FromInt(p.Sar(p.topByte(s, n), p.U(24)))), offset
	}
	if p.d.Affine() {
		offset = p.blockScale(s, 1)
	}
	return scale, offset
}

// integerScales returns the integer scale of span n of a sub-block and, of an affine type, the
// integer that the scale of offsets multiplies (qtype.Desc.IntegerScales).
func (p *panel) integerScales(s subBlock, n int) (scale, offset devgen.Value) {
	switch p.d.Subs {
	case qtype.PairSubs:
		return p.Shr(p.topByte(s, 0), p.U(24)), p.Shr(p.topByte(s, 1), p.U(24))
	case qtype.NibbleSubs:
		pair := p.Shr(p.topByte(s, n), p.U(24))
		return p.And(pair, p.U(15)), p.Shr(pair, p.U(4))
	case qtype.SignedSubs:
		return p.Sar(p.topByte(s, n), p.U(24)), offset
	case qtype.OddSubs:
		four := p.Field(p.topByte(s, 0), 24+4*n, 4)
		return p.Or(p.Shl(four, p.U(1)), p.U(1)), offset
	}
	return p.U(1), offset
}

// scaleAt returns scales for the span that a variable k of the sub-block belongs to.
func (p *panel) scaleAt(s subBlock, k devgen.Value) (scale, offset devgen.Value) {
	scale, offset = p.scales(s, 0)
	if p.d.Span() < qtype.SubBlockK {
		second, _ := p.scales(s, 1)
		scale = p.Select(p.Less(k, p.U(p.d.Span())), scale, second)
	}
	return scale, offset
}

// numbers returns the stored numbers of the sub-block, four k per word, without sign.
func (p *panel) numbers(s subBlock) (u [qtype.SubBlockK / 4]devgen.Value) {
	words := map[int]devgen.Value{}
	for g := range u {
		u[g] = p.U(0)
		for field := range p.d.Fields {
			at, bit := p.d.Place(g, field)
			if words[at] == 0 {
				words[at] = p.load(p.Add(s.at, p.U(at/b32), p.column))
			}
			u[g] = p.Or(u[g], p.digits(words[at], p.U(bit), field))
		}
	}
	return u
}

// digits returns the bits of a field of four k, from bit `bit` of each byte of a word.
func (p *panel) digits(word, bit devgen.Value, field int) devgen.Value {
	bits := p.d.Fields[field].Bits
	if bits == 8 {
		return word
	}
	mask := p.U((1<<bits - 1) * 0x01010101)
	return p.Shl(p.And(p.Shr(word, bit), mask), p.U(p.d.Low(field)))
}

// group returns the stored numbers of group g, a variable, without sign.
func (p *panel) group(s subBlock, g devgen.Value) devgen.Value {
	u := p.U(0)
	for field := range p.d.Fields {
		bits := p.d.Fields[field].Bits
		groups := p.U(8 / bits)
		first, _ := p.d.Place(0, field)
		word := p.load(p.Add(s.at, p.U(first/b32), p.Mul(p.Div(g, groups), p.U(qtype.PanelWidth)), p.column))
		u = p.Or(u, p.digits(word, p.Mul(p.Rem(g, groups), p.U(bits)), field))
	}
	return u
}

// signed returns the integers that four numbers represent (qtype.Desc.Integer), as signed bytes.
func (p *panel) signed(u devgen.Value) devgen.Value {
	const tops = 0x80808080
	if p.d.Codebook != nil {
		return p.select4(u)
	}
	switch zero := p.d.ZeroPoint; zero {
	case 0:
		return u
	case 128:
		return p.Xor(u, p.U(tops))
	default: // a borrow does not leave a byte, since numbers have less than eight bits
		return p.Xor(p.Sub(p.Or(u, p.U(tops)), p.U(zero*0x01010101)), p.U(tops))
	}
}

// codebookEntries is the number of pairs of four-bit numbers.
const codebookEntries = 256

// newCodebook writes the values of each pair of numbers of a codebook to a shared array, as two
// bytes of a word, by all invocations of a workgroup of size invocations. It returns no array for a
// type without a codebook.
func newCodebook(b *devgen.Builder, d *qtype.Desc, size int) (table devgen.Array) {
	if d.Codebook == nil {
		return table
	}
	table = b.Shared("codebook", codebookEntries)
	var words [4]devgen.Value // four values each
	for i := range words {
		word := uint32(0)
		for j := range 4 {
			word |= uint32(uint8(d.Codebook[4*i+j])) << (8 * j)
		}
		words[i] = b.U(int(word))
	}
	value := func(number devgen.Value) devgen.Value {
		which, word := b.Shr(number, b.U(2)), words[3]
		for i := 2; i >= 0; i-- {
			word = b.Select(b.Equal(which, b.U(i)), words[i], word)
		}
		return b.And(b.Shr(word, b.Shl(b.And(number, b.U(3)), b.U(3))), b.U(0xff))
	}
	b.For(b.Builtin(devgen.LocalIndex), b.U(codebookEntries), b.U(size), func(i devgen.Value) {
		b.StoreShared(table, i, b.Or(value(b.And(i, b.U(15))), b.Shl(value(b.Shr(i, b.U(4))), b.U(8))))
	})
	b.Barrier()
	return table
}

// select4 returns the values of four numbers of at most four bits each, as signed bytes.
func (p *panel) select4(u devgen.Value) devgen.Value {
	pairs := p.Or(u, p.Shr(u, p.U(4)))
	first := p.LoadShared(p.table, p.And(pairs, p.U(0xff)))
	second := p.LoadShared(p.table, p.Field(pairs, 16, 8))
	return p.Or(first, p.Shl(second, p.U(16)))
}
