package model

import (
	"cmp"
	"errors"
	"math"

	"sandwich/runtime/gguf"
)

// HeadScale returns 1/sqrt(headDim), the usual scale of attention scores.
func (c Config) HeadScale() float32 { return float32(1 / math.Sqrt(float64(c.HeadDim))) }

// ErrUnsupported is wrapped by all errors about a model that is valid but that this program cannot
// run.
var ErrUnsupported = errors.New("not supported")

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

// HeadsOf returns the sizes of a layer's attention.
func (c Config) HeadsOf(layer int) Heads {
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

// RotatedDims returns the number of dimensions of a head that rotate.
func (c Config) RotatedDims() int { return cmp.Or(c.RopeDim, c.HeadDim) }

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

// AttnScale returns the scale of attention scores.
func (c Config) AttnScale() float32 {
	if c.Scales.Attn > 0 {
		return float32(c.Scales.Attn)
	}
	return c.HeadScale()
}

// Scoring holds the sizes of a head that scores texts instead of embedding them.
type Scoring struct {
	Count int  // scores per text; 0: the model has no scores
	Dense bool // a product with tanh precedes the scores
	Share bool // the scores are normalized by softmax
}

// TiedHead reports whether the head is the embedding. A pooled model has no such head.
func (c Config) TiedHead() bool { return c.Tied && c.Pooling == NoPooling }

// Recurrence holds the sizes of a model's recurrent layers; all zero if it has none.
type Recurrence struct {
	Conv                                   int    // positions of the convolutions
	KeyHeads, ValueHeads, KeyDim, ValueDim int    // of the delta rule
	Every                                  int    // the last of so many layers has attention
	Layers                                 []bool // recurrent layers, instead of Every; or nil
	Joined                                 bool   // one tensor has all products, by key head
}

// Has reports whether a layer is recurrent.
func (r Recurrence) Has(layer int) bool {
	if r.Layers != nil {
		return r.Layers[layer]
	}
	return layer%r.Every < r.Every-1
}
