package model

import (
	"fmt"
	"math"

	"sandwich/microkernel/qtype"
	"sandwich/runtime/gguf"
)

// spec is one tensor that a configuration asks for.
type spec struct {
	name  string
	role  string // q k v o gate up down router head embed; "" for vectors, which stay float32
	layer int    // -1 outside the layers
	dims  []int  // ggml order: K, N, experts
	mean  float32
	std   float32 // of random values
	fixed []float32
}

// rows is the number of rows of the tensor's first dimension.
func (s spec) rows() int {
	n := 1
	for _, d := range s.dims[1:] {
		n *= d
	}
	return n
}

// typeFor is the type of the tensor in a file whose matrices are of type t. Routers stay float32, as in every converter; a row
// that is no whole number of blocks takes the next simpler type, as llama-quantize does.
func (s spec) typeFor(t gguf.Type) gguf.Type {
	if s.role == "" || s.role == "router" {
		return gguf.F32
	}
	fits := func(t gguf.Type) bool { elems, _ := t.Block(); return elems > 0 && s.dims[0]%elems == 0 }
	if d := t.Desc(); !fits(t) && d.Fallback != qtype.F32 {
		t = gguf.Type(d.Fallback)
	}
	if !fits(t) {
		t = gguf.F16
	}
	return t
}

// Random weights are scaled so that a forward pass behaves: activations of every layer near 1, attention neither flat nor one-hot, and logits
// with this standard deviation, so that a softmax has a clear top.
const logitStd = 6

// tensors lists every tensor of the configuration in the order of the file. It is the one place that spells shapes out for synth, inspection and shapes.
func (c Config) tensors() []spec {
	arch, err := archOf(c.Arch)
	if err != nil {
		return nil
	}
	l := &lister{c: c, arch: arch}
	embedStd := float32(0.5)
	outNorm := float32(1)
	if c.Tied {
		// A tied head gets its scale from the last norm, so that the input embedding can stay small.
		embedStd = 0.12
		outNorm = logitStd / (embedStd * float32(math.Sqrt(float64(c.Hidden))))
	}
	l.add(spec{name: "token_embd.weight", role: "embed", layer: -1, dims: []int{c.Hidden, c.Vocab}, std: embedStd})
	if c.Llama3 != nil {
		l.add(spec{name: "rope_freqs.weight", layer: -1, dims: []int{c.HeadDim / 2}, fixed: c.Llama3.Factors(c.RopeBase, c.HeadDim)})
	}
	for layer := range c.Layers {
		l.attention(layer)
		l.feedForward(layer)
	}
	l.norm("output_norm.weight", -1, c.Hidden, outNorm)
	if !c.Tied {
		l.matrix("output.weight", "head", -1, c.Hidden, c.Vocab, logitStd)
	}
	return l.specs
}

// lister collects specs.
type lister struct {
	c     Config
	arch  architecture
	specs []spec
}

func (l *lister) add(s spec) { l.specs = append(l.specs, s) }

func (l *lister) norm(name string, layer, n int, mean float32) {
	l.add(spec{name: name, layer: layer, dims: []int{n}, mean: mean, std: 0.1 * mean})
}

// matrix adds a weight [n, k], gain being the factor from input to output standard deviation.
func (l *lister) matrix(name, role string, layer, k, n int, gain float64, experts ...int) {
	l.add(spec{name: name, role: role, layer: layer, dims: append([]int{k, n}, experts...), std: float32(gain / math.Sqrt(float64(k)))})
}

func (l *lister) attention(layer int) {
	c := l.c
	name := func(s string) string { return fmt.Sprintf("blk.%d.%s", layer, s) }
	q, kv := c.Heads*c.HeadDim, c.KVHeads*c.HeadDim
	l.norm(name("attn_norm.weight"), layer, c.Hidden, 1)
	l.matrix(name("attn_q.weight"), "q", layer, c.Hidden, q, 1.2)
	l.matrix(name("attn_k.weight"), "k", layer, c.Hidden, kv, 1.2)
	l.matrix(name("attn_v.weight"), "v", layer, c.Hidden, kv, 1)
	l.matrix(name("attn_output.weight"), "o", layer, q, c.Hidden, 1.5)
	if l.arch.qkvBias {
		l.add(spec{name: name("attn_q.bias"), layer: layer, dims: []int{q}, std: 0.5})
		l.add(spec{name: name("attn_k.bias"), layer: layer, dims: []int{kv}, std: 0.5})
		l.add(spec{name: name("attn_v.bias"), layer: layer, dims: []int{kv}, std: 0.3})
	}
	if l.arch.qkNorm {
		l.norm(name("attn_q_norm.weight"), layer, c.HeadDim, 1.2)
		l.norm(name("attn_k_norm.weight"), layer, c.HeadDim, 1.2)
	}
}

func (l *lister) feedForward(layer int) {
	c := l.c
	name := func(s string) string { return fmt.Sprintf("blk.%d.%s", layer, s) }
	l.norm(name("ffn_norm.weight"), layer, c.Hidden, 1)
	if e := c.Experts; e.Count > 0 {
		l.matrix(name("ffn_gate_inp.weight"), "router", layer, c.Hidden, e.Count, 2)
		l.matrix(name("ffn_gate_exps.weight"), "gate", layer, c.Hidden, e.FFN, 1, e.Count)
		l.matrix(name("ffn_up_exps.weight"), "up", layer, c.Hidden, e.FFN, 1.5, e.Count)
		l.matrix(name("ffn_down_exps.weight"), "down", layer, e.FFN, c.Hidden, 1.5, e.Count)
		return
	}
	l.matrix(name("ffn_gate.weight"), "gate", layer, c.Hidden, c.FFN, 1)
	l.matrix(name("ffn_up.weight"), "up", layer, c.Hidden, c.FFN, 1.5)
	l.matrix(name("ffn_down.weight"), "down", layer, c.FFN, c.Hidden, 1.5)
}
