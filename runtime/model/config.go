package model

import (
	"cmp"
	"fmt"
	"math"

	"sandwich/runtime/gguf"
)

// Config describes a model by its sizes and parameters, without weights. Presets, Hugging Face
// configurations and GGUF metadata are all read into a Config.
type Config struct {
	Name string
	Arch string // as GGUF names it
	Dims
	Eps                   float64 // of the RMS norms
	RopeBase              float64
	RopeDim               int         // leading dimensions of a head that rotate; 0: all
	RopeScale             float64     // factor of positions (linear scaling); 0: 1
	RopeGain              float64     // factor of cosines and sines, in addition to that of Yarn; 0: 1
	Axes                  bool        // the rotation has several axes, which are equal in text, and pairs (i, i+d/2)
	Unrotated             []int       // pairs that do not rotate in text
	NoRope                bool        // layers have no positions
	RopeRule              string      // name of an unsupported scaling rule
	Llama3                *Llama3Rope // frequency scaling of Llama 3.1 and later, or nil
	Yarn                  *Yarn       // or nil
	Original              int         // context before extension, for families with LongRoPE; else 0
	Tied                  bool        // the head is the embedding
	Experts               Experts
	Windows               Windows
	Recurrence            Recurrence
	Scales                Scales
	AttnTemperature       float64 // AttnTemperature.Scale, 0 for none
	AttnTemperatureLength int     // AttnTemperature.Length without Yarn
	Bidirectional         bool    // attention includes later rows
	Fused                 bool    // q, k and v are one tensor
	Types                 int     // token types; the row of type 0 is added to all tokens; 0: none
	Pooling               Pooling
	Template              string    // chat template of a synthetic model; empty: the family's
	Tokenizer             Tokenizer // of another file, for a synthetic model; nil: the family's
	Scoring               Scoring
	Dense                 []int // widths of the products after pooling
	// Sizes by layer; nil if all layers have those of Dims, which are the maxima.
	KVHeadsOf, FFNOf []int
	SharedKV         int    // number of last layers that read keys and values of earlier layers
	NoValues         []bool // layers that use their keys as values; nil: none
	Latent           Latent
	Gating           Router // router parameters of the file
	Inputs           int    // width of the embedding per layer, 0 for none
	FusedExperts     bool   // gate and up of the experts are rows of one tensor
}

// Tokenizer writes the metadata of a tokenizer with a number of tokens.
type Tokenizer interface {
	WriteTokens(w *gguf.Writer, tokens int)
}

// headsOf returns the sizes of a layer's attention.
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

// ffnOf returns the width of a layer's feed-forward.
func (c Config) ffnOf(layer int) int {
	if c.FFNOf != nil {
		return c.FFNOf[layer]
	}
	return c.FFN
}

// Windows describes layers with sliding window attention. The zero value means full attention in
// all layers.
type Windows struct {
	Size    int     // positions of a window
	Period  int     // the last of so many layers has full attention; 0: none has
	Layers  []bool  // layers with a window, instead of Period; or nil
	Base    float64 // rotation base in windowed layers; 0: that of the others
	Scale   float64 // factor of positions in windowed layers if the others have none; 0: none
	HeadDim int     // head size of windowed layers; 0: that of the others
	RopeDim int     // leading dimensions of their heads that rotate; 0: that of the others
	Chunk   int     // positions of an attention chunk, instead of a window; 0: none
}

// Has reports whether a layer has a window.
func (w Windows) Has(layer int) bool {
	if w.Layers != nil {
		return w.Size > 0 && w.Layers[layer]
	}
	return w.Size > 0 && (w.Period == 0 || layer%w.Period < w.Period-1)
}

// Of returns the window size of a layer, 0 for none.
func (w Windows) Of(layer int) int {
	if w.Has(layer) {
		return w.Size
	}
	return 0
}

// Scales holds scale factors and soft caps; 0 means none.
type Scales struct {
	Embed    float64 // rows of tokens
	Residual float64 // output of a block
	Attn     float64 // attention scores, instead of 1/sqrt(headDim)
	Logits   float64 // divisor of logits
	AttnCap  float64 // soft cap of attention scores
	LogitCap float64 // soft cap of logits
}

// Experts holds the sizes of a mixture-of-experts feed-forward; all zero in a dense model.
type Experts struct {
	Count  int // experts per layer
	Used   int // experts per token
	FFN    int // width of an expert
	Shared int // width of the feed-forward that applies to every token; 0 for none
	Dense  int // leading layers without experts
	Every  int // the last of so many layers has experts; 0: all have
}

// in reports whether a layer has experts.
func (e Experts) in(layer int) bool {
	return e.Count > 0 && layer >= e.Dense && (e.Every == 0 || layer%e.Every == e.Every-1)
}

// Latent holds the sizes of latent attention, which computes keys and values of all heads from one
// short row (DeepSeek-V2, 2024, section 2.1); all zero in other models.
type Latent struct {
	Q, KV      int  // width of the latent rows of queries, and of keys and values; Q may be 0
	Key, Value int  // size of a head's key, rotated elements included, and of its value
	Split      bool // the file has a matrix of keys and one of values per head
}

// check returns an error for sizes that are not possible, or that differ from the cached heads.
func (l Latent) check(c Config) error {
	dim, kv := max(l.Key, l.Value), c.Heads
	if l.Split {
		dim, kv = l.KV+c.ropeDim(), 1
	}
	if l.KV < 1 || l.Q < 0 || l.Value < 1 || l.Key <= c.ropeDim() || max(l.KV, l.Q, l.Key, l.Value) > 1<<14 ||
		c.HeadDim != dim || c.KVHeads != kv {
		return fmt.Errorf("latent attention with ranks %d and %d, keys of %d (%d rotated) and values of %d is not "+
			"possible with %d cached heads of %d", l.Q, l.KV, l.Key, c.ropeDim(), l.Value, c.KVHeads, c.HeadDim)
	}
	return nil
}

// maxExperts is the limit of experts per layer.
const maxExperts = 1 << 12

// checkConfig returns an error that names the first size of a configuration which is not possible,
// or which its family cannot have.
func checkConfig(c Config) error {
	a, err := archOf(c.Arch)
	if err != nil {
		return err
	}
	if err := c.CheckSizes(); err != nil {
		return err
	}
	return a.Check(c)
}

// CheckSizes returns an error that names the first size which is not possible in any family.
func (c Config) CheckSizes() error {
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
	return c.checkPooling()
}

// checkLayers checks the sizes that differ by layer.
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
		return fmt.Errorf("%d of %d layers share keys and values, and embeddings per layer have width %d: "+
			"out of range", c.SharedKV, c.Layers, c.Inputs)
	}
	return nil
}

// check returns an error for sizes that are not possible.
func (e Experts) check() error {
	if e.Count < 1 || e.Count > maxExperts || e.Used < 1 || e.Used > e.Count || e.FFN < 1 || e.FFN > 1<<20 ||
		e.Shared < 0 || e.Shared > 1<<20 || e.Dense < 0 || e.Every < 0 {
		return fmt.Errorf("%d experts of width %d with %d per token are out of range", e.Count, e.FFN, e.Used)
	}
	return nil
}

// ropeDim returns the number of dimensions of a head that rotate.
func (c Config) ropeDim() int { return cmp.Or(c.RopeDim, c.HeadDim) }

// ropeScale returns the factor of positions.
func (c Config) ropeScale() float64 { return cmp.Or(c.RopeScale, 1) }

// ropeGain returns the factor of cosines and sines.
func (c Config) ropeGain() float64 {
	gain := cmp.Or(c.RopeGain, 1)
	if c.Yarn != nil {
		gain *= c.Yarn.Gain()
	}
	return gain
}

// attnScale returns the scale of attention scores.
func (c Config) attnScale() float32 {
	if c.Scales.Attn > 0 {
		return float32(c.Scales.Attn)
	}
	return c.HeadScale()
}

// checkExperts is the Check function of a family whose models have experts.
func checkExperts(c Config) error { return c.Experts.check() }

// checkMaybe is the Check function of a family whose models may have experts.
func checkMaybe(c Config) error {
	if c.Experts == (Experts{}) {
		return nil
	}
	return c.Experts.check()
}

// checkWindows is the Check function of a dense family whose layers have windows.
func checkWindows(c Config) error {
	if err := c.Windows.check(c.Arch); err != nil {
		return err
	}
	return checkDense(c)
}

// checkMaybeWindows is the Check function of a dense family whose layers may have windows.
func checkMaybeWindows(c Config) error {
	if c.Windows.Size > 0 {
		return checkWindows(c)
	}
	return checkDense(c)
}

// check returns an error for window sizes that are not possible.
func (w Windows) check(arch string) error {
	if w.Size < 1 || w.Size > 1<<26 || w.Period < 0 || w.Period > 1<<10 {
		return fmt.Errorf("windows of %d positions in %d of %d layers are out of range for a %s model", w.Size,
			w.Period-1, w.Period, arch)
	}
	return nil
}
