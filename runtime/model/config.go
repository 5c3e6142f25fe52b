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
	Eps       float64 // of the RMS norms
	RopeBase  float64
	RopeDim   int         // leading dimensions of a head that rotate; 0: all
	RopeScale float64     // of positions (linear scaling); 0: 1
	RopeRule  string      // another rule of scaling by its name, which nothing here computes
	Llama3    *Llama3Rope // frequency scaling of Llama 3.1 and later, or nil
	Tied      bool        // the head is the embedding
	Experts   Experts
}

// Experts are the sizes of a mixture-of-experts feed-forward; all zero in a dense model.
type Experts struct {
	Count int // experts per layer
	Used  int // of them for each token
	FFN   int // width of one
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
		{"vocabulary size", c.Vocab, 1 << 24}, {"context length", c.Context, 1 << 26},
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
	if c.Llama3 != nil {
		if err := c.Llama3.check(); err != nil {
			return err
		}
	}
	return arch.Check(c)
}

// check refuses sizes that no mixture has.
func (e Experts) check() error {
	if e.Count < 1 || e.Count > maxExperts || e.Used < 1 || e.Used > e.Count || e.FFN < 1 || e.FFN > 1<<20 {
		return fmt.Errorf("%d experts of width %d, %d used, are not possible", e.Count, e.FFN, e.Used)
	}
	return nil
}

// ropeDim is how many dimensions of a head rotate.
func (c Config) ropeDim() int { return cmp.Or(c.RopeDim, c.HeadDim) }

// ropeScale is what positions are multiplied by.
func (c Config) ropeScale() float64 { return cmp.Or(c.RopeScale, 1) }
