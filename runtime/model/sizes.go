package model

import "fmt"

// Experts holds the sizes of a mixture-of-experts feed-forward; all zero in a dense model.
type Experts struct {
	Count  int // experts per layer
	Used   int // experts per token
	FFN    int // width of an expert
	Shared int // width of the feed-forward that applies to every token; 0 for none
	Dense  int // leading layers without experts
	Every  int // the last of so many layers has experts; 0: all have
}

// In reports whether a layer has experts.
func (e Experts) In(layer int) bool {
	return e.Count > 0 && layer >= e.Dense && (e.Every == 0 || layer%e.Every == e.Every-1)
}

// Latent holds the sizes of latent attention, which computes keys and values of all heads from one
// short row (DeepSeek-V2, 2024, section 2.1); all zero in other models.
type Latent struct {
	Q, KV      int  // width of the latent rows of queries, and of keys and values; Q may be 0
	Key, Value int  // size of a head's key, rotated elements included, and of its value
	Split      bool // the file has a matrix of keys and one of values per head
}

// Check returns an error for sizes that are not possible, or that differ from the cached heads.
func (l Latent) Check(c Config) error {
	dim, kv := max(l.Key, l.Value), c.Heads
	if l.Split {
		dim, kv = l.KV+c.RotatedDims(), 1
	}
	if l.KV < 1 || l.Q < 0 || l.Value < 1 || l.Key <= c.RotatedDims() || max(l.KV, l.Q, l.Key, l.Value) > 1<<14 ||
		c.HeadDim != dim || c.KVHeads != kv {
		return fmt.Errorf("latent attention with ranks %d and %d, keys of %d (%d rotated) and values of %d is not "+
			"possible with %d cached heads of %d", l.Q, l.KV, l.Key, c.RotatedDims(), l.Value, c.KVHeads, c.HeadDim)
	}
	return nil
}

// MaxExperts is the limit of experts per layer.
const MaxExperts = 1 << 12

// Check returns an error for sizes that are not possible.
func (e Experts) Check() error {
	if e.Count < 1 || e.Count > MaxExperts || e.Used < 1 || e.Used > e.Count || e.FFN < 1 || e.FFN > 1<<20 ||
		e.Shared < 0 || e.Shared > 1<<20 || e.Dense < 0 || e.Every < 0 {
		return fmt.Errorf("%d experts of width %d with %d per token are out of range", e.Count, e.FFN, e.Used)
	}
	return nil
}

// Dims holds the sizes of a decoder, in elements.
type Dims struct {
	Hidden  int // width of the residual stream
	Layers  int
	Heads   int
	KVHeads int
	HeadDim int
	FFN     int
	Vocab   int
	Context int // maximum positions of a sequence
}

// Heads holds the sizes of a layer's attention.
type Heads struct{ Q, KV, Dim int }
