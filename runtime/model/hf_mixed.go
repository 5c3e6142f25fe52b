package model

import (
	"cmp"
	"fmt"
	"slices"
)

// Configurations of families whose layers differ in more than one way.

// gemma4 reads the sizes of windowed and full layers. The last layer always has full attention.
func (h *HF) gemma4(c *Config) error {
	if err := h.require(map[string]int{"num_key_value_heads": h.KVHeads}); err != nil {
		return err
	}
	near, err := h.kinds("sliding_attention", "full_attention")
	switch {
	case err != nil:
		return err
	case h.Layers < 1 || h.Layers > 1<<10:
		return nil // Check returns the error
	case string(h.UseBidirectional) == `"all"`:
		return fmt.Errorf(`use_bidirectional_attention "all" is %w`, ErrUnsupported)
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
		return fmt.Errorf("vocab_size_per_layer_input %d with vocab_size %d is %w", n, h.Vocab, ErrUnsupported)
	}
	if h.HasExperts {
		c.Experts, c.FusedExperts = Experts{Count: h.Experts, Used: h.TopExperts, FFN: h.ExpertFFN}, true
	}
	return nil
}

// gemma4Rope reads the rotations of windowed and full layers. A partial rotation of full layers
// (proportional) needs no size, since GGUF files store it as factors of the angles.
func (h *HF) gemma4Rope(c *Config) error {
	if h.Rope == nil {
		h.Rope = &hfRope{Far: &hfRope{Type: "proportional", Theta: 1e6}, Near: &hfRope{Theta: 1e4}}
	}
	near := h.Rope.Near
	if h.Rope.Far == nil || near == nil {
		return h.require(map[string]int{"rope_parameters of full_attention and sliding_attention": 0})
	}
	if kind := near.kind(); kind != "" && kind != "default" {
		return fmt.Errorf("RoPE scaling %q in layers with a window is %w", kind, ErrUnsupported)
	}
	c.Windows.Base = cmp.Or(near.Theta, 1e4)
	return nil
}

// llama4 reads the sizes of experts and dense layers. It returns an error for values that the
// published models do not have, since their GGUF files cannot express them.
func (h *HF) llama4(c *Config) error {
	if err := h.require(map[string]int{"head_dim": h.HeadDim, "num_key_value_heads": h.KVHeads,
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
	tuning := string(h.TemperatureTuning)
	switch {
	case every < 1:
		return fmt.Errorf("interleave_moe_layer_step is %d, not a positive number", every)
	case h.ChunkSize.or(llama4Chunk) != llama4Chunk:
		return fmt.Errorf("attention_chunk_size %d is %w: it must be %d", h.ChunkSize.value, ErrUnsupported,
			llama4Chunk)
	case cmp.Or(h.PlainEvery, llama4FullPeriod) != llama4FullPeriod || !h.every(h.Rotated, llama4FullPeriod):
		return fmt.Errorf("no_rope_layers other than every %dth are %w", llama4FullPeriod, ErrUnsupported)
	case norms == (h.LocalExperts == llama4Maverick):
		return fmt.Errorf("use_qk_norm %v with %d experts is %w: in GGUF files the one determines the other", norms,
			h.LocalExperts, ErrUnsupported)
	case tuning == "false" || tuning == "0" || tuning == "null" ||
		cmp.Or(h.TemperatureFloor, llama4Chunk) != llama4Chunk ||
		cmp.Or(h.TemperatureScale, llama4Temperature) != llama4Temperature:
		return fmt.Errorf("attn_temperature_tuning %s with a floor_scale of %d and an attn_scale of %v is %w", tuning,
			h.TemperatureFloor, h.TemperatureScale, ErrUnsupported)
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

// every reports whether a list has zeros exactly at the last place of each period. An empty list is
// the default, which has.
func (h *HF) every(list []int, period int) bool {
	for i, one := range list {
		if (one == 0) != (i%period == period-1) {
			return false
		}
	}
	return len(list) == 0 || len(list) >= h.Layers
}
