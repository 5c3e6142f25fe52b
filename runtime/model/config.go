package model

import (
	"fmt"
	"math"
)

// Config is a model by its sizes alone: enough to tune for it, and, with random weights, to run it. Presets, Hugging Face
// configurations and GGUF metadata all become one.
type Config struct {
	Name string
	Arch string // llama, qwen2, qwen3, qwen3moe
	Dims
	Eps      float64 // of the RMS norms
	RopeBase float64
	Llama3   *Llama3Rope // frequency scaling of Llama 3.1 and later, or nil
	Tied     bool        // the head is the embedding
	Experts  Experts
}

// Experts are the sizes of a mixture-of-experts feed-forward; all zero in a dense model.
type Experts struct {
	Count int // experts per layer
	Used  int // of them for each token
	FFN   int // width of one
}

// Llama3Rope is the rule by which Llama 3.1 stretches its context: waves longer than Original/Low are slowed by Factor, those shorter than Original/High kept, the ones between interpolated.
type Llama3Rope struct {
	Factor, Low, High float64
	Original          int // context of the first training, tokens
}

// Factors returns the divisors of the angles of a head's dim/2 pairs, for rotation base base.
func (r Llama3Rope) Factors(base float64, dim int) []float32 {
	out := make([]float32, dim/2)
	for i := range out {
		wave := 2 * math.Pi * math.Pow(base, float64(2*i)/float64(dim))
		switch {
		case wave < float64(r.Original)/r.High:
			out[i] = 1
		case wave > float64(r.Original)/r.Low:
			out[i] = float32(r.Factor)
		default:
			smooth := (float64(r.Original)/wave - r.Low) / (r.High - r.Low)
			out[i] = float32(1 / ((1-smooth)/r.Factor + smooth))
		}
	}
	return out
}

// moeArch is the architecture with experts.
const moeArch = "qwen3moe"

// maxExperts is more than any model has.
const maxExperts = 1 << 12

// archOf returns what is special about an architecture that this program runs.
func archOf(name string) (architecture, error) {
	a, ok := architectures[name]
	if !ok {
		return a, fmt.Errorf("architecture %q is %w: use a llama, qwen2, qwen3 or qwen3moe model", name, ErrUnsupported)
	}
	return a, nil
}

// Check refuses a configuration that cannot be a model, naming the size at fault.
func (c Config) Check() error {
	if _, err := archOf(c.Arch); err != nil {
		return err
	}
	for _, s := range []struct {
		name  string
		value int
		most  int
	}{
		{"hidden size", c.Hidden, 1 << 17}, {"number of layers", c.Layers, 1 << 10}, {"number of heads", c.Heads, 1 << 12},
		{"number of KV heads", c.KVHeads, 1 << 12}, {"head dimension", c.HeadDim, 1 << 12}, {"feed-forward width", c.FFN, 1 << 20},
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
	if r := c.Llama3; r != nil && (!(r.Factor > 0) || !(r.Low > 0) || !(r.High > r.Low) || r.Original < 1) {
		return fmt.Errorf("RoPE scaling %+v is no Llama 3 rule: it needs factor > 0, 0 < low < high and an original context", *r)
	}
	return c.checkExperts()
}

func (c Config) checkExperts() error {
	e := c.Experts
	if c.Arch != moeArch {
		if e != (Experts{}) {
			return fmt.Errorf("architecture %s has no experts, yet %d are given", c.Arch, e.Count)
		}
		return nil
	}
	if e.Count < 1 || e.Count > maxExperts || e.Used < 1 || e.Used > e.Count || e.FFN < 1 || e.FFN > 1<<20 {
		return fmt.Errorf("%d experts of width %d, %d used, are not possible", e.Count, e.FFN, e.Used)
	}
	return nil
}
