package model

import (
	"cmp"
	"fmt"
	"math"
)

// Config is a model by its sizes alone: enough to tune for it, and, with random weights, to run it.
// Presets, Hugging Face configurations and GGUF metadata all become one.
type Config struct {
	Name string
	Arch string // as GGUF names it
	Dims
	Eps        float64 // of the RMS norms
	RopeBase   float64
	RopeDim    int         // leading dimensions of a head that rotate; 0: all
	RopeScale  float64     // of positions (linear scaling); 0: 1
	RopeGain   float64     // of the rotation's cosines and sines, beside that of Yarn; 0: 1
	Axes       bool        // the rotation has several, in text equal, and turns halves of a head
	Still      []int       // pairs that rotate by another axis than the position
	NoRope     bool        // layers know no positions
	RopeRule   string      // another rule of scaling by its name, which nothing here computes
	Llama3     *Llama3Rope // frequency scaling of Llama 3.1 and later, or nil
	Yarn       *Yarn       // or nil
	Original   int         // positions of the first training, where the family asks for it; else 0
	Tied       bool        // the head is the embedding
	Experts    Experts
	Windows    Windows
	Recurrence Recurrence
	Scales     Scales
	Temper     float64 // Temper.Scale, 0 for none
	TemperFrom int     // Temper.Length without Yarn
	Both       bool    // rows see what is behind them, too
	Fused      bool    // q, k and v are one tensor, where the family leaves that to the file
	Types      int     // token types, of which 0 is added to every row; 0: none
	Pooling    Pooling
	Template   string // of chats, for models that Synth writes; empty: one in the manner of the family
	borrowed   *borrowed
	Scoring    Scoring
	Dense      []int // widths of the products behind pooling
	// What layers have of their own, nil where all have the sizes of Dims, which are the greatest.
	KVHeadsOf, FFNOf []int
	SharedKV         int    // so many last layers read keys and values of earlier ones
	NoValues         []bool // layers that take their keys for values; nil: none
	Latent           Latent
	Gating           Router // what a file says of its router
	Inputs           int    // width of each layer's own embedding, 0 for none
	FusedExperts     bool   // gate and up of the experts are rows of one tensor
}

// headsOf are the sizes of a layer's attention.
func (c Config) headsOf(layer int) Heads {
	h := Heads{c.Heads, c.KVHeads, c.HeadDim}
	if c.KVHeadsOf != nil {
		h.KV = c.KVHeadsOf[layer]
	}
	if c.Windows.HeadDim > 0 && c.Windows.Has(layer) {
		h.Dim = c.Windows.HeadDim
	}
	return h
}

// ffnOf is the width of a layer's feed-forward.
func (c Config) ffnOf(layer int) int {
	if c.FFNOf != nil {
		return c.FFNOf[layer]
	}
	return c.FFN
}

// Windows say which layers see how far; all zero where every layer sees everything.
type Windows struct {
	Size    int     // positions that a layer with a window sees
	Period  int     // of so many layers the last sees everything
	Layers  []bool  // which have one, in the place of Period; or nil
	Base    float64 // of the rotation in layers with a window; 0: that of the others
	Scale   float64 // of positions in them, where the others scale nothing; 0: none either
	HeadDim int     // of layers with a window; 0: that of the others
	RopeDim int     // leading dimensions of their heads that rotate; 0: that of the others
	Chunk   int     // positions of a chunk, in the place of a window; 0 for none
}

// Has says whether a layer has a window.
func (w Windows) Has(layer int) bool {
	if w.Layers != nil {
		return w.Size > 0 && w.Layers[layer]
	}
	return w.Size > 0 && (w.Period == 0 || layer%w.Period < w.Period-1)
}

// Of is the window of a layer, 0 for none.
func (w Windows) Of(layer int) int {
	if w.Has(layer) {
		return w.Size
	}
	return 0
}

// Scales are numbers by which families multiply, and bound; 0 where one does not.
type Scales struct {
	Embed    float64 // rows of tokens
	Residual float64 // what a block adds
	Attn     float64 // scores, in the place of 1/sqrt(headDim)
	Logits   float64 // they are divided by it
	AttnCap  float64 // scores are capped softly
	LogitCap float64 // so are logits
}

// Experts are the sizes of a mixture-of-experts feed-forward; all zero in a dense model.
type Experts struct {
	Count int // experts per layer
	Used  int // of them for each token
	FFN   int // width of one
	// width of the feed-forward that every token goes through beside them; 0 for none
	Shared int
	Dense  int // leading layers that have none
	Every  int // of so many layers the last has some; 0: all
}

// in says whether a layer has experts.
func (e Experts) in(layer int) bool {
	return e.Count > 0 && layer >= e.Dense && (e.Every == 0 || layer%e.Every == e.Every-1)
}

// Latent are the sizes of latent attention, where keys and values of all heads are made of one
// short row (DeepSeek-V2, 2024, section 2.1); all zero elsewhere.
type Latent struct {
	Q, KV      int  // elements of the rows that queries, and keys and values, are made of; Q may be 0
	Key, Value int  // of a head, Key with the elements that rotate
	Split      bool // there is a matrix of keys and one of values for each head
}

// check refuses sizes that no model has, or that the cache's heads do not have.
func (l Latent) check(c Config) error {
	dim, kv := max(l.Key, l.Value), c.Heads
	if l.Split {
		dim, kv = l.KV+c.ropeDim(), 1
	}
	if l.KV < 1 || l.Q < 0 || l.Value < 1 || l.Key <= c.ropeDim() || max(l.KV, l.Q, l.Key, l.Value) > 1<<14 ||
		c.HeadDim != dim || c.KVHeads != kv {
		return fmt.Errorf("latent attention of %d and %d elements for heads of %d and %d, %d of them rotated, is not "+
			"possible with %d cached heads of %d", l.Q, l.KV, l.Key, l.Value, c.ropeDim(), c.KVHeads, c.HeadDim)
	}
	return nil
}

// maxExperts is more than any model has.
const maxExperts = 1 << 12

// Check refuses a configuration that cannot be a model, naming the size at fault.
func (c Config) Check() error {
	arch, err := archOf(c.Arch)
	if err != nil {
		return err
	}
	for _, s := range []struct {
		name  string
		value int
		most  int
	}{
		{"hidden size", c.Hidden, 1 << 17}, {"number of layers", c.Layers, 1 << 10}, {"number of heads",
			c.Heads, 1 << 12},
		{"number of KV heads", c.KVHeads, 1 << 12}, {"head dimension", c.HeadDim, 1 << 12}, {"feed-forward width",
			c.FFN, 1 << 20},
		{"vocabulary size", c.Vocab, 1 << 19}, {"context length", c.Context, 1 << 26},
	} {
		if s.value < 1 || s.value > s.most {
			return fmt.Errorf("the %s is %d, outside 1..%d", s.name, s.value, s.most)
		}
	}
	if c.Heads%c.KVHeads != 0 {
		return fmt.Errorf("%d query heads cannot share %d KV heads evenly", c.Heads, c.KVHeads)
	}
	if !(c.Eps > 0 && c.Eps < 1) || !(c.RopeBase > 0) || math.IsInf(c.RopeBase, 0) {
		return fmt.Errorf("norm epsilon %g and rotation base %g must be positive numbers", c.Eps, c.RopeBase)
	}
	if dim := c.ropeDim(); dim < 2 || dim > c.HeadDim || dim%2 != 0 {
		return fmt.Errorf("%d of %d head dimensions cannot rotate in pairs", dim, c.HeadDim)
	}
	if err := c.checkLayers(); err != nil {
		return err
	}
	if c.Llama3 != nil {
		if err := c.Llama3.check(); err != nil {
			return err
		}
	}
	if c.Yarn != nil {
		if err := c.Yarn.check(); err != nil {
			return err
		}
	}
	if err := c.checkPooling(); err != nil {
		return err
	}
	return arch.Check(c)
}

// checkLayers refuses sizes of single layers that none has.
func (c Config) checkLayers() error {
	for _, list := range []struct {
		what  string
		sizes int
	}{{"number of KV heads", len(c.KVHeadsOf)}, {"feed-forward width", len(c.FFNOf)},
		{"window", len(c.Windows.Layers)}, {"kind of values", len(c.NoValues)}} {
		if list.sizes != 0 && list.sizes != c.Layers {
			return fmt.Errorf("the %s is given for %d layers of %d", list.what, list.sizes, c.Layers)
		}
	}
	for layer, n := range c.FFNOf {
		if n < 1 || n > c.FFN {
			return fmt.Errorf("the feed-forward width of layer %d is %d, outside 1..%d", layer, n, c.FFN)
		}
	}
	for layer := range c.KVHeadsOf {
		if h := c.headsOf(layer); h.KV < 1 && c.Recurrence.Conv == 0 || h.KV > 0 && h.Q%h.KV != 0 {
			return fmt.Errorf("layer %d: %d query heads cannot share %d KV heads evenly", layer, h.Q, h.KV)
		}
	}
	if w := c.Windows; w.HeadDim < 0 || w.HeadDim > 1<<12 || w.RopeDim < 0 || w.RopeDim%2 != 0 ||
		w.RopeDim > cmp.Or(w.HeadDim, c.HeadDim) {
		return fmt.Errorf("%d of %d head dimensions of layers with a window cannot rotate in pairs", w.RopeDim,
			cmp.Or(w.HeadDim, c.HeadDim))
	}
	if c.SharedKV < 0 || c.SharedKV >= c.Layers || c.Inputs < 0 || c.Inputs > 1<<16 {
		return fmt.Errorf("%d of %d layers that share keys and values, and %d own inputs of each, are not possible",
			c.SharedKV, c.Layers, c.Inputs)
	}
	return nil
}

// check refuses sizes that no mixture has.
func (e Experts) check() error {
	if e.Count < 1 || e.Count > maxExperts || e.Used < 1 || e.Used > e.Count || e.FFN < 1 || e.FFN > 1<<20 ||
		e.Shared < 0 || e.Shared > 1<<20 || e.Dense < 0 || e.Every < 0 {
		return fmt.Errorf("%d experts of width %d, %d used, are not possible", e.Count, e.FFN, e.Used)
	}
	return nil
}

// ropeDim is how many dimensions of a head rotate.
func (c Config) ropeDim() int { return cmp.Or(c.RopeDim, c.HeadDim) }

// ropeScale is what positions are multiplied by.
func (c Config) ropeScale() float64 { return cmp.Or(c.RopeScale, 1) }

// ropeGain is what cosines and sines are multiplied by.
func (c Config) ropeGain() float64 {
	gain := cmp.Or(c.RopeGain, 1)
	if c.Yarn != nil {
		gain *= c.Yarn.Gain()
	}
	return gain
}

// attnScale is that of attention scores.
func (c Config) attnScale() float32 {
	if c.Scales.Attn > 0 {
		return float32(c.Scales.Attn)
	}
	return c.HeadScale()
}

// checkExperts is the check of a family that has experts in every layer.
func checkExperts(c Config) error { return c.Experts.check() }

// checkMaybe is that of a family whose models may have experts.
func checkMaybe(c Config) error {
	if c.Experts == (Experts{}) {
		return nil
	}
	return c.Experts.check()
}

// checkWindows is the check of a dense family whose layers have windows.
func checkWindows(c Config) error {
	if err := c.Windows.check(c.Arch); err != nil {
		return err
	}
	return checkDense(c)
}

// checkMaybeWindows is that of a dense family whose layers may have windows.
func checkMaybeWindows(c Config) error {
	if c.Windows.Size > 0 {
		return checkWindows(c)
	}
	return checkDense(c)
}

func (w Windows) check(arch string) error {
	if w.Size < 1 || w.Size > 1<<26 || w.Period < 0 || w.Period > 1<<10 {
		return fmt.Errorf("layers of a %s model have windows, and one of %d positions in %d of %d layers is not "+
			"possible", arch, w.Size, w.Period-1, w.Period)
	}
	return nil
}
