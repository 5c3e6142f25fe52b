package model

import "sandwich/plans"

// PerHead multiplies k elements of each head of in by the head's own matrix [n, k]. The heads begin
// every inStep elements of in and every outStep elements of out.
func (b *Builder) PerHead(name string, in, out Buf, inStep, outStep, k, n int) {
	at := len(b.m.Weights)
	b.m.Weights = append(b.m.Weights, Weight{Name: b.name("attn_" + name + ".weight"), Role: plans.RoleWhole + name,
		Layer: b.layer, N: n, K: k, Stack: b.Heads, Rows: n, Of: [2]int{n, k}})
	b.Op(OpHeads, name, Op{In: in, Outs: []Buf{out}, Heads: b.LayerHeads, N: n,
		ProductOp: ProductOp{W: []int{at}, Bias: []*Vector{nil}}, HeadsOp: HeadsOp{inStep, outStep}})
}

// RotateLatent computes queries, keys and values of latent attention from Q or Full, LatentKV and
// KeyVal by position, and stores keys and values in the cache.
func (b *Builder) RotateLatent(rope *Rope) {
	b.kvLayer = b.layer
	b.Op(OpLatent, "rotate", Op{RotateOp: RotateOp{Rope: rope}, Heads: b.LayerHeads, KVLayer: b.layer,
		Latent: b.Latent})
}
