package model

import (
	"cmp"
	"fmt"
	"slices"
)

// The configurations of families whose layers are unlike each other in more than one way.

// gemma4 reads what layers of either kind have. The last layer attends to everything, whatever the
// list says.
func (h *HF) gemma4(c *Config) error {
	if err := h.demands(map[string]int{"num_key_value_heads": h.KVHeads}); err != nil {
		return err
	}
	near, err := h.kinds("sliding_attention", "full_attention")
	switch {
	case err != nil:
		return err
	case h.Layers < 1 || h.Layers > 1<<10:
		return nil // which Check refuses
	case string(h.BothWays) == `"all"`:
		return fmt.Errorf("use_bidirectional_attention of all tokens is %w", ErrUnsupported)
	case near == nil:
		near = notLast(h.Layers, 6)
	}
	near[h.Layers-1] = false
	c.HeadDim, c.Tied = cmp.Or(h.FarHeadDim, 512), h.Tied == nil || *h.Tied
	c.Scales = Scales{LogitCap: h.LogitCap}
	dim := cmp.Or(h.HeadDim, 256)
	c.Windows = Windows{Size: cmp.Or(h.sliding(), 512), Layers: near, HeadDim: dim, RopeDim: dim}
	if err := h.gemma4Rope(c); err != nil {
		return err
	}
	if h.KeysValues {
		for _, has := range near {
			c.NoValues = append(c.NoValues, !has)
		}
	}
	if far := h.FarKVHeads; h.KeysValues && far > 0 {
		for _, has := range near {
			c.KVHeadsOf = append(c.KVHeadsOf, map[bool]int{true: h.KVHeads, false: far}[has])
		}
		c.KVHeads = max(c.KVHeads, far)
	}
	c.SharedKV = h.SharedKV
	if h.DoubleWide && h.SharedKV > 0 {
		c.FFNOf, c.FFN = widths(h.Layers-h.SharedKV, h.FFN, h.Layers, 2*h.FFN), 2*h.FFN
	}
	c.Inputs = h.Inputs.or(256)
	if n := cmp.Or(h.InputVocab, 262144); c.Inputs > 0 && n != h.Vocab {
		return fmt.Errorf("vocab_size_per_layer_input %d beside a vocab_size of %d is %w", n, h.Vocab, ErrUnsupported)
	}
	if h.HasExperts {
		c.Experts, c.FusedExperts = Experts{Count: h.Experts, Used: h.TopExperts, FFN: h.ExpertFFN}, true
	}
	return nil
}

// gemma4Rope reads the rotations of layers with and without a window. Those without may rotate in
// part (proportional), which files have as factors of the angles and no size follows from.
func (h *HF) gemma4Rope(c *Config) error {
	if h.Rope == nil {
		h.Rope = &hfRope{Far: &hfRope{Type: "proportional", Theta: 1e6}, Near: &hfRope{Theta: 1e4}}
	}
	near := h.Rope.Near
	if h.Rope.Far == nil || near == nil {
		return h.demands(map[string]int{"rope_parameters of full_attention and sliding_attention": 0})
	}
	if kind := near.kind(); kind != "" && kind != "default" {
		return fmt.Errorf("RoPE scaling %q in layers with a window is %w", kind, ErrUnsupported)
	}
	c.Windows.Base = cmp.Or(near.Theta, 1e4)
	return nil
}

// llama4 reads the sizes of experts and of the layers between them, and refuses what the published
// models do not have and their GGUF files cannot say.
func (h *HF) llama4(c *Config) error {
	if err := h.demands(map[string]int{"head_dim": h.HeadDim, "num_key_value_heads": h.KVHeads,
		"intermediate_size_mlp": h.DenseFFN}); err != nil {
		return err
	}
	every := cmp.Or(h.ExpertEvery, 1)
	c.FFN = h.DenseFFN
	c.Experts = Experts{Count: h.LocalExperts, Used: h.ExpertsUsed, FFN: h.FFN, Shared: h.FFN, Every: every}
	c.Windows.Chunk = llama4Chunk
	if h.Rope == nil && h.RopeTheta == 0 {
		h.RopeTheta, c.RopeBase = 5e5, 5e5
	}
	norms := h.HeadNorms == nil || *h.HeadNorms
	tempers := string(h.Tempers)
	switch {
	case every < 1:
		return fmt.Errorf("interleave_moe_layer_step is %d, not a positive number", every)
	case h.ChunkSize.or(llama4Chunk) != llama4Chunk:
		return fmt.Errorf("attention_chunk_size %d is %w: %d is", h.ChunkSize.value, ErrUnsupported, llama4Chunk)
	case cmp.Or(h.PlainEvery, llama4FullPeriod) != llama4FullPeriod || !h.every(h.Rotated, llama4FullPeriod):
		return fmt.Errorf("no_rope_layers other than every %dth are %w", llama4FullPeriod, ErrUnsupported)
	case norms == (h.LocalExperts == llama4Maverick):
		return fmt.Errorf("use_qk_norm %v with %d experts is %w: GGUF files tell the one by the other", norms,
			h.LocalExperts, ErrUnsupported)
	case tempers == "false" || tempers == "0" || tempers == "null" ||
		cmp.Or(h.TemperFloor, llama4Chunk) != llama4Chunk || cmp.Or(h.TemperScale, llama4Temper) != llama4Temper:
		return fmt.Errorf("attn_temperature_tuning %s with a floor_scale of %d and an attn_scale of %v is %w", tempers,
			h.TemperFloor, h.TemperScale, ErrUnsupported)
	}
	for i := range h.ExpertsIn {
		if len(h.ExpertsIn) != h.Layers/every || h.ExpertsIn[i] != every*(i+1)-1 {
			return fmt.Errorf("moe_layers other than every %dth are %w", every, ErrUnsupported)
		}
	}
	layers, err := h.kinds("full_attention", "chunked_attention")
	if err == nil && layers != nil && !slices.Equal(layers, lastOf(h.Layers, llama4FullPeriod)) {
		err = fmt.Errorf("layer_types other than full_attention in every %dth are %w", llama4FullPeriod, ErrUnsupported)
	}
	return err
}

// every says that a list of ones has a zero at each last place of a period; an empty list is the
// default, which does.
func (h *HF) every(list []int, period int) bool {
	for i, one := range list {
		if (one == 0) != (i%period == period-1) {
			return false
		}
	}
	return len(list) == 0 || len(list) >= h.Layers
}
