package model

import (
	"fmt"
	"slices"
	"strconv"

	"sandwich/plans"
	"sandwich/runtime/gguf"
)

// Pooling identifies how the rows of a text are reduced to one output row.
type Pooling uint8

// Kinds of pooling.
const (
	NoPooling    Pooling = iota // the model generates text
	MeanPooling                 // of all rows (Reimers, Gurevych: Sentence-BERT, 2019)
	FirstPooling                // the row of the first token, [CLS]
	LastPooling                 // the row of the last token
)

var poolingNames = [...]string{"none", "mean", "first", "last"}

func (p Pooling) String() string { return poolingNames[p] }

// Scoring holds the sizes of a head that scores texts instead of embedding them.
type Scoring struct {
	Count int  // scores per text; 0: the model has no scores
	Dense bool // a product with tanh precedes the scores
	Share bool // the scores are normalized by softmax
}

// Pooled reports whether the model computes a vector or scores of a text and generates no text.
func (m *Model) Pooled() bool { return m.Pooling != NoPooling }

// WholeText reports whether a text must be in one forward: for bidirectional attention, and for
// mean or first pooling.
func (m *Model) WholeText() bool {
	return m.Pooling == MeanPooling || m.Pooling == FirstPooling || slices.ContainsFunc(m.Ops, func(op Op) bool {
		return op.Kind == OpAttention && op.Attn.Bidirectional
	})
}

// LearnedPositions reports whether positions index a learned table, which limits the length of a
// text.
func (m *Model) LearnedPositions() bool {
	return slices.ContainsFunc(m.Ops, func(op Op) bool { return op.PosEmbed != nil })
}

// poolRank is llama.cpp's pooling type of models that score. Smaller types are those of Pooling.
const poolRank = 4

// pooled reads pooling, projections and scores from a file, and the token types of encoders.
func (c *Config) pooled(f *gguf.File) error {
	if causal, ok := f.Bool(c.Arch + ".attention.causal"); ok {
		c.Bidirectional = !causal
	}
	if c.Bidirectional {
		c.Types = rowsOf(f, "token_types.weight")
	}
	kind, _ := f.Uint(c.Arch + ".pooling_type")
	switch {
	case kind == 0:
		return nil
	case kind == poolRank:
		return c.scoring(f)
	case kind > poolRank:
		return fmt.Errorf("%s.pooling_type %d is %w: it must be 0 to %d", c.Arch, kind, ErrUnsupported, poolRank)
	}
	c.Pooling = Pooling(kind)
	for _, name := range denseNames {
		if n := rowsOf(f, name+".weight"); n > 0 {
			c.Dense = append(c.Dense, n)
		}
	}
	return nil
}

// rowsOf returns the number of rows of a tensor, 0 if the file does not have it.
func rowsOf(f *gguf.File, tensor string) int {
	t, ok := f.Tensor(tensor)
	switch {
	case !ok:
		return 0
	case len(t.Dims) > 1:
		return t.Dims[1]
	}
	return 1
}

// denseNames lists the products after pooling in order (modules 2 and 3 of sentence-transformers).
var denseNames = [...]string{"dense_2", "dense_3"}

// scoring reads the head of a model that scores. The head of an encoder reads the first row. The
// head of a decoder reads the last row, and its scores are normalized by softmax, as llama.cpp does
// for the Qwen3 family.
func (c *Config) scoring(f *gguf.File) error {
	c.Pooling = LastPooling
	if c.Bidirectional {
		c.Pooling = FirstPooling
	}
	_, c.Scoring.Dense = f.Tensor("cls.weight")
	c.Scoring.Count, c.Scoring.Share = rowsOf(f, "cls.output.weight"), !c.Bidirectional
	if c.Scoring.Count == 0 {
		return fmt.Errorf("the model scores texts (pooling type %d), but the file has no tensor cls.output.weight: "+
			"it is damaged, or of a kind that is %w", poolRank, ErrUnsupported)
	}
	return nil
}

// readHead sets pooling, scores and projections by the matrices of a shape.
func (c *Config) readHead(s plans.ModelShape) {
	c.Pooling = LastPooling
	for _, w := range s.Weights {
		switch w.Role {
		case "head":
			c.Pooling = NoPooling
		case "cls":
			c.Scoring.Dense = true
		case "score":
			c.Scoring.Count, c.Scoring.Share = w.N, !c.Bidirectional
		case denseNames[0], denseNames[1]:
			c.Dense = append(c.Dense, w.N)
		}
	}
}

// tied reports whether the head is the embedding. A pooled model has no such head.
func (c Config) tied() bool { return c.Tied && c.Pooling == NoPooling }

// checkPooling returns an error for pooling, scores or projections that are not possible.
func (c Config) checkPooling() error {
	switch {
	case c.Pooling == NoPooling && c.Bidirectional:
		return fmt.Errorf("the file of a %s model has no %s.pooling_type: convert it again with its "+
			"sentence-transformers folders", c.Arch, c.Arch)
	case c.Scoring.Count < 0 || c.Scoring.Count > 1<<16:
		return fmt.Errorf("a head of %d scores is out of range 0..%d", c.Scoring.Count, 1<<16)
	case c.Types < 0 || c.Types > 1<<16:
		return fmt.Errorf("%d token types are out of range 0..%d", c.Types, 1<<16)
	case len(c.Dense) > len(denseNames):
		return fmt.Errorf("%d products after pooling are too many, the limit is %d", len(c.Dense), len(denseNames))
	}
	for _, width := range c.Dense {
		if width < 1 || width > 1<<17 {
			return fmt.Errorf("a vector of %d numbers is out of range 1..%d", width, 1<<17)
		}
	}
	return nil
}

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
	b.op(OpPool, "pool", Op{In: in, Outs: []Buf{out}, Pool: b.Pooling}) // [texts, hidden]
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
		b.wanted(in, Product{Role: denseNames[i], Tensor: denseNames[i], N: n, K: width, Bias: IfPresent, Out: out})
		width = n
	}
	b.m.Outputs = width
}

// score reads Y [texts, hidden] and writes Logits [texts, scores].
func (b *Builder) score() {
	in := BufY
	if b.Scoring.Dense {
		b.wanted(in, Product{Role: "cls", Tensor: "cls", N: b.Hidden, K: b.Hidden, Bias: IfPresent, Out: BufH})
		b.op(OpCap, "cls.tanh", Op{In: BufH, Cap: 1})
		in = BufH
	}
	n := b.Scoring.Count
	b.wanted(in, Product{Role: "score", Tensor: "cls.output", N: n, K: b.Hidden, Bias: IfPresent, Out: BufLogits})
	if b.Scoring.Share {
		b.op(OpSoftmax, "cls.softmax", Op{In: BufLogits})
	}
	b.m.Outputs = n
}

// wanted adds a product of the wanted rows only.
func (b *Builder) wanted(in Buf, p Product) {
	b.product(p.Tensor, Op{In: in, Wanted: true}, []Product{p})
	b.pending = false
}

// Keys of the norms' epsilon.
const (
	rmsEps   = "attention.layer_norm_rms_epsilon"
	layerEps = "attention.layer_norm_epsilon"
)

// hasLayerNorm reports whether the model has LayerNorms.
func hasLayerNorm(m *Model) bool {
	return slices.ContainsFunc(m.Ops, func(op Op) bool { return op.Shift != nil })
}

// writePooling writes the metadata of pooled models.
func writePooling(w *gguf.Writer, c Config) {
	key := func(s string) string { return c.Arch + "." + s }
	if c.Pooling == NoPooling {
		return
	}
	kind := uint32(c.Pooling)
	if c.Scoring.Count > 0 {
		kind = poolRank
	}
	if n := c.Scoring.Count; n > 1 {
		labels := make([]string, n)
		for i := range labels {
			labels[i] = strconv.Itoa(i)
		}
		w.SetStrings(key("classifier.output_labels"), labels)
	}
	w.SetUint32(key("pooling_type"), kind)
	if c.Bidirectional {
		w.SetBool(key("attention.causal"), false)
	}
	in := c.Hidden
	for i, out := range c.Dense {
		w.SetUint32(key(denseNames[i]+"_feat_in"), uint32(in))
		w.SetUint32(key(denseNames[i]+"_feat_out"), uint32(out))
		in = out
	}
}
