package kernels

import (
	"fmt"

	"sandwich/microkernel/devgen"
	"sandwich/microkernel/devgen/weights"
	"sandwich/microkernel/internal/kernel"
	"sandwich/microkernel/qtype"
)

// Embed describes the lookup of rows of a table and their dequantization: out[row] =
// table[token[row]] * scale.
//
// Bindings: table, tokens (a word each), out (rows of float32). Push words: n (elements of a row),
// table_stride (of panels, in words), out_stride, scale (float32).
type Embed struct {
	Type qtype.Type
	// Packed reads panels, as of a head that is also the table. Otherwise the rows have the form of
	// the file, one after another, and table_stride is not used. Such a table has less than 2^32
	// bytes, or elements if it has plain floats.
	Packed bool
}

// Kernel builds the kernel. RowGrid has its workgroups.
func (e Embed) Kernel() (*devgen.Kernel, error) {
	if err := weights.Supports(e.Type, kernel.ComputeF32); err != nil {
		return nil, err
	}
	if err := supportsFile(e.Type); err != nil && !e.Packed {
		return nil, err
	}
	form := "rows"
	if e.Packed {
		form = "panels"
	}
	b := devgen.NewBuilder(identifier(fmt.Sprintf("embed_%s_%s", e.Type, form)), rowSize)
	table, tokens := b.Binding("table", devgen.Read), b.Binding("tokens", devgen.Read)
	out := b.Binding("out", devgen.Write)
	n, tableStride := b.Push("n", devgen.U32), b.Push("table_stride", devgen.U32)
	outStride, scale := b.Push("out_stride", devgen.U32), b.Push("scale", devgen.F32)
	k, row := elements(b)
	b.If(b.Less(k, n), func() {
		token := b.Load(tokens, row)
		var x devgen.Value
		if e.Packed {
			first := b.Mul(b.Shr(token, b.U(4)), tableStride)
			p := panel{Builder: b, d: e.Type.Desc(), column: b.And(token, b.U(qtype.PanelWidth-1)),
				load: func(word devgen.Value) devgen.Value { return b.Load(table, b.Add(first, word)) }}
			x = p.element(k)
		} else {
			f := fileRow{Builder: b, d: e.Type.Desc(), table: table, row: token, n: n}
			x = f.element(k)
		}
		b.Store(out, b.MulAdd(row, outStride, k), b.FMul(x, scale))
	})
	return b.Build()
}

// element returns element k of the column as the file format defines it: scale times number, so
// that a zero has the sign it has there.
func (p *panel) element(k devgen.Value) devgen.Value {
	if p.d.Float != qtype.None {
		return p.plain(k)
	}
	s := p.subBlock(p.Shr(k, p.U(5)))
	in := p.And(k, p.U(qtype.SubBlockK-1))
	u := p.And(p.Shr(p.group(s, p.Shr(in, p.U(2))), p.Shl(p.And(in, p.U(3)), p.U(3))), p.U(0xff))
	scale, offset := p.scaleAt(s, in)
	return valueOf(p.Builder, p.d, u, scale, offset)
}

// valueOf returns the value of a stored number.
func valueOf(b *devgen.Builder, d *qtype.Desc, u, scale, offset devgen.Value) devgen.Value {
	x := b.FMul(b.FromInt(b.Sub(u, b.U(d.ZeroPoint))), scale)
	if d.Affine() {
		return b.FAdd(x, offset) // the product is exact
	}
	return x
}

// fileRow reads one row of a table in the form of the file.
type fileRow struct {
	*devgen.Builder
	d     *qtype.Desc
	table devgen.Buffer
	row   devgen.Value // number of the row
	n     devgen.Value // elements of a row
}

// supportsFile returns why Embed cannot read rows of a type in the form of the file, or nil.
func supportsFile(t qtype.Type) error {
	switch d := t.Desc(); {
	case d.Subs == qtype.NoSubs, t == qtype.Q4_K, t == qtype.Q5_K, t == qtype.Q6_K:
		return nil
	}
	return fmt.Errorf("no device kernel reads rows of type %s in the form of the file", t)
}

// byteAt returns a byte of the table.
func (f *fileRow) byteAt(at devgen.Value) devgen.Value {
	word := f.Load(f.table, f.Shr(at, f.U(2)))
	return f.And(f.Shr(word, f.Shl(f.And(at, f.U(3)), f.U(3))), f.U(0xff))
}

// halfAt returns the two bytes at an even byte of the table.
func (f *fileRow) halfAt(at devgen.Value) devgen.Value {
	return halfOf(f.Builder, f.Load(f.table, f.Shr(at, f.U(2))), f.Shr(at, f.U(1)))
}

// element returns element k of the row.
func (f *fileRow) element(k devgen.Value) devgen.Value {
	i := f.MulAdd(f.row, f.n, k)
	half := func() devgen.Value { return halfOf(f.Builder, f.Load(f.table, f.Shr(i, f.U(1))), i) }
	switch f.d.Float {
	case qtype.Single:
		return f.LoadF(f.table, i)
	case qtype.Half:
		return f.FloatFromHalf(half())
	case qtype.Brain:
		return f.Float(f.Shl(half(), f.U(16)))
	}
	first := f.Mul(f.row, f.Div(f.n, f.U(f.d.Block))) // block of the row
	block := f.Mul(f.Add(first, f.Div(k, f.U(f.d.Block))), f.U(f.d.Bytes))
	in := f.Rem(k, f.U(f.d.Block))
	u := f.U(0)
	for i := range f.d.Fields {
		u = f.Or(u, f.Shl(f.digits(block, in, i), f.U(f.d.Low(i))))
	}
	if f.d.Signed {
		u = f.Xor(u, f.U(f.d.ZeroPoint))
	}
	scale, offset := f.scales(block, in)
	return valueOf(f.Builder, f.d, u, scale, offset)
}

// digits returns the bits of a field of element k of a block.
func (f *fileRow) digits(block, k devgen.Value, field int) devgen.Value {
	p := &f.d.Fields[field]
	each, run := f.U(8/p.Bits), f.Div(k, f.U(p.Run))
	at := f.Add(f.MulAdd(f.Div(run, each), f.U(p.Run), f.Rem(k, f.U(p.Run))), f.U(p.At))
	bits := f.Shr(f.byteAt(f.Add(block, at)), f.Mul(f.Rem(run, each), f.U(p.Bits)))
	return f.And(bits, f.U(1<<p.Bits-1))
}

// scales returns the scale of element k of a block and, of an affine type, the offset.
func (f *fileRow) scales(block, k devgen.Value) (scale, offset devgen.Value) {
	scale = f.FloatFromHalf(f.halfAt(f.Add(block, f.U(f.d.BlockScales[0]))))
	if f.d.Affine() {
		offset = f.FloatFromHalf(f.halfAt(f.Add(block, f.U(f.d.BlockScales[1]))))
	}
	sub := f.Add(block, f.U(f.d.SubRaw.At))
	switch f.d.Subs {
	case qtype.PairSubs:
		s, o := f.sixBitPair(sub, f.Div(k, f.U(qtype.SubBlockK)))
		return f.FMul(scale, f.FromInt(s)), f.FNeg(f.FMul(offset, f.FromInt(o)))
	case qtype.SignedSubs:
		s := f.byteAt(f.Add(sub, f.Div(k, f.U(f.d.Span()))))
		return f.FMul(scale, f.FromInt(f.SignedByte(s, f.U(0)))), offset
	}
	return scale, offset
}

// sixBitPair returns the scale and the offset of sub-block j of q4_k and q5_k: six bits each, of
// the first four in bytes 0 to 7, of the others in nibbles of bytes 8 to 11 and the upper bits of
// bytes 0 to 7.
func (f *fileRow) sixBitPair(at, j devgen.Value) (scale, offset devgen.Value) {
	early := f.Less(j, f.U(4))
	i := f.Add(at, f.And(j, f.U(3)))
	first, second, last := f.byteAt(i), f.byteAt(f.Add(i, f.U(4))), f.byteAt(f.Add(i, f.U(8)))
	top := func(x devgen.Value) devgen.Value { return f.Shl(f.Shr(x, f.U(6)), f.U(4)) }
	scale = f.Select(early, f.And(first, f.U(63)), f.Or(f.And(last, f.U(15)), top(first)))
	offset = f.Select(early, f.And(second, f.U(63)), f.Or(f.Shr(last, f.U(4)), top(second)))
	return scale, offset
}
