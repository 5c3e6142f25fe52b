package model

// Pool writes Logits [texts, width] from the rows [T, hidden] of a buffer: one pooled row of each
// text that ends in the forward, after the projections or scores of the configuration.
func (b *Builder) Pool(in Buf) {
	steps := len(b.Dense)
	if b.Scoring.Count > 0 {
		steps = 1
		if b.Scoring.Dense {
			steps = 2
		}
	}
	out := BufLogits
	if steps > 0 {
		out = BufY
	}
	b.Op(OpPool, "pool", Op{In: in, Outs: []Buf{out}, Pool: b.Pooling}) // [texts, hidden]
	b.m.Outputs = b.Hidden
	if b.Scoring.Count > 0 {
		b.score()
		return
	}
	width := b.Hidden
	for i, n := range b.Dense {
		in, out := BufY, BufGate
		if i > 0 {
			in = BufGate
		}
		if i+1 == steps {
			out = BufLogits
		}
		b.wanted(in, Product{Role: DenseNames[i], Tensor: DenseNames[i], N: n, K: width, Bias: IfPresent, Out: out})
		width = n
	}
	b.m.Outputs = width
}

// score reads Y [texts, hidden] and writes Logits [texts, scores].
func (b *Builder) score() {
	in := BufY
	if b.Scoring.Dense {
		b.wanted(in, Product{Role: "cls", Tensor: "cls", N: b.Hidden, K: b.Hidden, Bias: IfPresent, Out: BufH})
		b.Op(OpCap, "cls.tanh", Op{In: BufH, Cap: 1})
		in = BufH
	}
	n := b.Scoring.Count
	b.wanted(in, Product{Role: "score", Tensor: "cls.output", N: n, K: b.Hidden, Bias: IfPresent, Out: BufLogits})
	if b.Scoring.Share {
		b.Op(OpSoftmax, "cls.softmax", Op{In: BufLogits})
	}
	b.m.Outputs = n
}

// wanted adds a product of the wanted rows only.
func (b *Builder) wanted(in Buf, p Product) {
	b.product(p.Tensor, Op{In: in, ProductOp: ProductOp{Wanted: true}}, []Product{p})
	b.pending = false
}
