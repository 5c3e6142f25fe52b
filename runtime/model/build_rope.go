package model

import "cmp"

// Rope returns the rotation of the configuration with the values that r sets. Layers with the same
// rotation share the pointer. A rotation with another base has no scaling and no factors.
func (b *Builder) Rope(r Rope) *Rope {
	if r.Base == 0 {
		r.Base, r.Yarn = b.RopeBase, b.Yarn
		r.Factors = &Vector{Name: "rope_freqs.weight", N: b.RotatedDims() / 2, Optional: true}
		if b.Original > 0 {
			n := b.RotatedDims() / 2
			r.Long = &Long{Original: b.Original,
				Short: &Vector{Name: "rope_factors_short.weight", N: n, Optional: true},
				Long:  &Vector{Name: "rope_factors_long.weight", N: n, Optional: true}}
		}
		if b.Llama3 != nil {
			r.Factors.Data = b.Llama3.factors(r.Base, b.RotatedDims())
		}
		r.Gain = b.ropeGain()
		if r.Scale == 0 {
			r.Scale = b.ropeScale()
		}
	}
	r.Scale, r.Gain = cmp.Or(r.Scale, 1), cmp.Or(r.Gain, 1)
	r.Dim, r.Unrotated, r.Rule = cmp.Or(r.Dim, b.RotatedDims()), b.Unrotated, b.RopeRule
	return &r
}

// Local returns an unscaled rotation with the given base, for windowed layers.
func (b *Builder) Local(base float64, neox bool) *Rope { return b.Rope(Rope{Base: base, Neox: neox}) }

// Near returns the rotation of windowed layers: far with the base and the scale of Windows, if
// these are set.
func (b *Builder) Near(far *Rope) *Rope {
	base, scale := cmp.Or(b.Windows.Base, far.Base), cmp.Or(b.Windows.Scale, far.Scale)
	if base == far.Base && scale == far.Scale {
		return far
	}
	near := b.Rope(Rope{Neox: far.Neox, Scale: scale})
	near.Base = base
	return near
}

// Rotation describes the changes to the heads of Q, K and V before attention.
type Rotation struct {
	Rope            *Rope  // nil: no rotation
	QNorm, KNorm    string // tensors [headDim] of a norm of each head before the rotation; "" for none
	Plain           bool   // heads of Q and K are normalized without a weight
	VNorm           bool   // values are normalized without a weight
	KeysAsValues    bool   // values are the keys before their norm
	AttnTemperature *AttnTemperature
	KVLayer         int // 1 + the earlier layer whose K and V this one reads; 0: its own
}

// Rotate normalizes and rotates Q and K, and stores K and V in the cache.
func (b *Builder) Rotate(r Rotation) {
	o := Op{Heads: b.LayerHeads, KVLayer: b.layer,
		RotateOp: RotateOp{Rope: r.Rope, AttnTemperature: r.AttnTemperature, KeysAsValues: r.KeysAsValues}}
	if r.KVLayer > 0 {
		o.KVLayer = r.KVLayer - 1
	}
	if b.kvLayer = o.KVLayer; r.QNorm != "" {
		o.QNorm = b.Vector(r.QNorm+".weight", b.LayerHeads.Dim, Always)
	}
	if r.KNorm != "" && r.KVLayer == 0 {
		o.KNorm = b.Vector(r.KNorm+".weight", b.LayerHeads.Dim, Always)
	}
	if r.Plain {
		o.QNorm, o.KNorm = plain(b.LayerHeads.Dim), plain(b.LayerHeads.Dim)
	}
	if r.VNorm && r.KVLayer == 0 {
		o.VNorm = plain(b.LayerHeads.Dim)
	}
	b.Op(OpRotate, "rotate", o)
}

// plain returns the weight of a norm without a weight: n ones.
func plain(n int) *Vector {
	v := &Vector{N: n, Data: make([]float32, n)}
	for i := range v.Data {
		v.Data[i] = 1
	}
	return v
}

// Attend writes the attention output Att [T, heads*headDim].
func (b *Builder) Attend(a Attn) {
	a.Bidirectional = a.Bidirectional || b.Bidirectional
	b.Op(OpAttention, "attention", Op{AttentionOp: AttentionOp{Attn: a}, Heads: b.LayerHeads, KVLayer: b.kvLayer})
}

// AttendSinks is Attend with a sink: one more score per head, from a tensor [heads], that has no
// value.
func (b *Builder) AttendSinks(a Attn, tensor string) {
	b.Op(OpAttention, "attention", Op{Heads: b.LayerHeads, KVLayer: b.kvLayer,
		AttentionOp: AttentionOp{a, b.Vector(tensor+".weight", b.LayerHeads.Q, Always)}})
}
