package model

import (
	"fmt"
	"slices"
	"strconv"

	"sandwich/plans"
	"sandwich/runtime/gguf"
)

// Pooling is how the rows of a text become the one row that a model answers with.
type Pooling uint8

// Kinds of pooling.
const (
	NoPooling    Pooling = iota // the model generates text
	MeanPooling                 // of all rows (Reimers, Gurevych: Sentence-BERT, 2019)
	FirstPooling                // the row of the token in front, [CLS]
	LastPooling                 // that of the last token
)

var poolingNames = [...]string{"none", "mean", "first", "last"}

func (p Pooling) String() string { return poolingNames[p] }

// Scoring are the sizes of a head that scores texts instead of embedding them.
type Scoring struct {
	Count int  // scores of a text; 0: the model scores nothing
	Dense bool // a product with tanh stands before the scores
	Share bool // the scores are a softmax
}

// Pooled tells a model that makes a vector or some scores of a text from one that generates.
func (m *Model) Pooled() bool { return m.Pooling != NoPooling }

// AtOnce tells whether all of a text has to be in one forward: where a row sees those behind it,
// and where rows are pooled that an earlier forward would have made.
func (m *Model) AtOnce() bool {
	return m.Pooling == MeanPooling || m.Pooling == FirstPooling || slices.ContainsFunc(m.Ops, func(op Op) bool {
		return op.Kind == OpAttention && op.Attn.Both
	})
}

// Learned tells whether positions are rows of a table, so that a text can have no more of them.
func (m *Model) Learned() bool {
	return slices.ContainsFunc(m.Ops, func(op Op) bool { return op.Places != nil })
}

// The numbers of llama.cpp for pooling; rank is that of models that score.
const poolRank = 4

// pooled reads from a file how the rows of a text become one, what is behind that, and what
// encoders have in front.
func (c *Config) pooled(f *gguf.File) error {
	if causal, ok := f.Bool(c.Arch + ".attention.causal"); ok {
		c.Both = !causal
	}
	if c.Both {
		c.Types = rowsOf(f, "token_types.weight")
	}
	kind, _ := f.Uint(c.Arch + ".pooling_type")
	switch {
	case kind == 0:
		return nil
	case kind == poolRank:
		return c.scoring(f)
	case kind > poolRank:
		return fmt.Errorf("%s.pooling_type is %d, which is %w: 0 to %d are", c.Arch, kind, ErrUnsupported, poolRank)
	}
	c.Pooling = Pooling(kind)
	for _, name := range denseNames {
		if n := rowsOf(f, name+".weight"); n > 0 {
			c.Dense = append(c.Dense, n)
		}
	}
	return nil
}

// rowsOf is the number of rows of a tensor, 0 where the file has none.
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

// denseNames are products behind pooling, in their order (sentence-transformers' modules 2 and 3).
var denseNames = [...]string{"dense_2", "dense_3"}

// scoring reads the head of a model that scores. That of an encoder reads the first row, that of a
// decoder the last one, and makes a softmax of its scores, as llama.cpp has it for the Qwen3
// family.
func (c *Config) scoring(f *gguf.File) error {
	c.Pooling = LastPooling
	if c.Both {
		c.Pooling = FirstPooling
	}
	_, c.Scoring.Dense = f.Tensor("cls.weight")
	c.Scoring.Count, c.Scoring.Share = rowsOf(f, "cls.output.weight"), !c.Both
	if c.Scoring.Count == 0 {
		return fmt.Errorf("the file scores texts (pooling type %d) and has no tensor cls.output.weight: it is "+
			"damaged, or "+
			"of a kind that is %w", poolRank, ErrUnsupported)
	}
	return nil
}

// outlined reads off the matrices of a shape without a head over the vocabulary what it has
// instead.
func (c *Config) outlined(s plans.ModelShape) {
	c.Pooling = LastPooling
	for _, w := range s.Weights {
		switch w.Role {
		case "head":
			c.Pooling = NoPooling
		case "cls":
			c.Scoring.Dense = true
		case "score":
			c.Scoring.Count, c.Scoring.Share = w.N, !c.Both
		case denseNames[0], denseNames[1]:
			c.Dense = append(c.Dense, w.N)
		}
	}
}

// tied says that the head is the embedding: not in a pooled model, which has none.
func (c Config) tied() bool { return c.Tied && c.Pooling == NoPooling }

func (c Config) checkPooling() error {
	switch {
	case c.Pooling == NoPooling && c.Both:
		return fmt.Errorf("the file does not say how rows of a model of kind %s are pooled (%s.pooling_type): convert "+
			"it again "+
			"with its sentence-transformers folders", c.Arch, c.Arch)
	case c.Scoring.Count < 0 || c.Scoring.Count > 1<<16:
		return fmt.Errorf("a head of %d scores is not possible", c.Scoring.Count)
	case c.Types < 0 || c.Types > 1<<16:
		return fmt.Errorf("%d token types are not possible", c.Types)
	case len(c.Dense) > len(denseNames):
		return fmt.Errorf("%d products behind pooling are not possible", len(c.Dense))
	}
	for _, width := range c.Dense {
		if width < 1 || width > 1<<17 {
			return fmt.Errorf("a vector of %d numbers is not possible", width)
		}
	}
	return nil
}

// Pool is Logits [texts, width] of the rows [T, hidden] of a buffer: one row of each text that ends
// in the forward, and what the configuration has behind that.
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

// score reads Y [texts, hidden]: Logits [texts, classes].
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

// wanted is a product of the wanted rows alone.
func (b *Builder) wanted(in Buf, p Product) {
	b.product(p.Tensor, Op{In: in, Wanted: true}, []Product{p})
	b.pending = false
}

// Keys of the norms' epsilon.
const (
	rmsEps   = "attention.layer_norm_rms_epsilon"
	layerEps = "attention.layer_norm_epsilon"
)

// epsKey is the one that files of the configuration have.
func (c Config) epsKey() string {
	m, err := c.Model()
	if err == nil && slices.ContainsFunc(m.Ops, func(op Op) bool { return op.Shift != nil }) {
		return layerEps
	}
	return rmsEps
}

// writePooling sets what pooled models have beside the others.
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
	if c.Both {
		w.SetBool(key("attention.causal"), false)
	}
	in := c.Hidden
	for i, out := range c.Dense {
		w.SetUint32(key(denseNames[i]+"_feat_in"), uint32(in))
		w.SetUint32(key(denseNames[i]+"_feat_out"), uint32(out))
		in = out
	}
}
