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
