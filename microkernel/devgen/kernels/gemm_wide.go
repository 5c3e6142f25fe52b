package kernels

import (
	"sandwich/microkernel/devgen"
	"sandwich/microkernel/qtype"
)

// wide adds the chains of path f32: one FMA per k with the exact value of the weight.
func (t *tile) wide() {
	if t.g.Weight.Desc().Float == qtype.None {
		t.For(t.U(0), t.Shr(t.k, t.U(2)), t.U(1), t.wideGroup)
		return
	}
	t.Range(t.k, func(k devgen.Value) {
		w := make([]devgen.Value, len(t.panels))
		for i := range t.panels {
			w[i] = t.panels[i].plain(k)
		}
		t.step(k, w)
	})
}

// step adds one k to the chains.
func (t *tile) step(k devgen.Value, w []devgen.Value) {
	for r, row := range t.rows {
		x := t.LoadF(t.a, t.Add(row, k))
		for i := range w {
			t.Set(t.acc[i][r], t.FMA(x, w[i], t.Get(t.acc[i][r])))
		}
	}
}

// wideGroup adds four k of quantized weights.
func (t *tile) wideGroup(group devgen.Value) {
	const groups = qtype.SubBlockK / 4
	values := make([][4]devgen.Value, len(t.panels))
	for i := range t.panels {
		p := &t.panels[i]
		s := p.subBlock(t.Div(group, t.U(groups)))
		g := t.Rem(group, t.U(groups))
		values[i] = p.values(s, g)
	}
	for j := range 4 {
		w := make([]devgen.Value, len(values))
		for i := range w {
			w[i] = values[i][j]
		}
		t.step(t.Add(t.Shl(group, t.U(2)), t.U(j)), w)
	}
}

// plain returns element k of a column of plain floats.
func (p *panel) plain(k devgen.Value) devgen.Value {
	switch p.d.Float {
	case qtype.Half:
		word := p.load(p.Add(p.Mul(k, p.U(qtype.PanelWidth/2)), p.Shr(p.column, p.U(1))))
		return p.FloatFromHalf(p.half(word, p.column))
	case qtype.Brain:
		word := p.load(p.MulAdd(p.Shr(k, p.U(1)), p.U(qtype.PanelWidth), p.column))
		return p.Float(p.Shl(p.half(word, k), p.U(16)))
	default:
		return p.Float(p.load(p.MulAdd(k, p.U(qtype.PanelWidth), p.column)))
	}
}

// values returns the weights of group g of a sub-block as products read them: by one FMA with exact
// operands, so that a zero is positive.
func (p *panel) values(s subBlock, g devgen.Value) (w [4]devgen.Value) {
	u := p.group(s, g)
	scale, offset := p.scaleAt(s, p.Shl(g, p.U(2)))
	one := 0
	if !p.d.Affine() {
		one = 1 << p.d.Bits()
		offset = p.FNeg(p.FMul(p.F(float32(one+p.d.ZeroPoint)), scale))
	}
	for j := range w {
		w[j] = p.FMA(p.FromInt(p.Add(p.Field(u, 8*j, 8), p.U(one))), scale, offset)
	}
	return w
}
