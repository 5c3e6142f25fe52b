package model

import (
	"cmp"
	"fmt"
	"math"
)

// CheckSizes returns an error that names the first size which is not possible in any family.
func (c Config) CheckSizes() error {
	for _, s := range []struct {
		name  string
		value int
		max   int
	}{
		{"hidden size", c.Hidden, 1 << 17}, {"number of layers", c.Layers, 1 << 10}, {"number of heads",
			c.Heads, 1 << 12},
		{"number of KV heads", c.KVHeads, 1 << 12}, {"head dimension", c.HeadDim, 1 << 12}, {"feed-forward width",
			c.FFN, 1 << 20},
		{"vocabulary size", c.Vocab, 1 << 19}, {"context length", c.Context, 1 << 26},
	} {
		if s.value < 1 || s.value > s.max {
			return fmt.Errorf("the %s is %d, outside 1..%d", s.name, s.value, s.max)
		}
	}
	if c.Heads%c.KVHeads != 0 {
		return fmt.Errorf("%d query heads cannot share %d KV heads evenly", c.Heads, c.KVHeads)
	}
	if !(c.Eps > 0 && c.Eps < 1) || !(c.RopeBase > 0) || math.IsInf(c.RopeBase, 0) {
		return fmt.Errorf("norm epsilon %g and rotation base %g must be positive numbers", c.Eps, c.RopeBase)
	}
	if dim := c.RotatedDims(); dim < 2 || dim > c.HeadDim || dim%2 != 0 {
		return fmt.Errorf("%d of %d head dimensions cannot rotate in pairs", dim, c.HeadDim)
	}
	if err := c.CheckLayers(); err != nil {
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

// CheckLayers checks the sizes that differ by layer.
func (c Config) CheckLayers() error {
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
		if h := c.HeadsOf(layer); h.KV < 1 && c.Recurrence.Conv == 0 || h.KV > 0 && h.Q%h.KV != 0 {
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

// Check returns an error for window sizes that are not possible.
func (w Windows) Check(arch string) error {
	if w.Size < 1 || w.Size > 1<<26 || w.Period < 0 || w.Period > 1<<10 {
		return fmt.Errorf("windows of %d positions in %d of %d layers are out of range for a %s model", w.Size,
			w.Period-1, w.Period, arch)
	}
	return nil
}

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
	case len(c.Dense) > len(DenseNames):
		return fmt.Errorf("%d products after pooling are too many, the limit is %d", len(c.Dense), len(DenseNames))
	}
	for _, width := range c.Dense {
		if width < 1 || width > 1<<17 {
			return fmt.Errorf("a vector of %d numbers is out of range 1..%d", width, 1<<17)
		}
	}
	return nil
}
