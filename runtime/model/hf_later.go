package model

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
)

// hfLater holds fields of families since 2025. Names and defaults are those of the configuration
// classes of transformers 5 (src/transformers/models/FAMILY/configuration_FAMILY.py of gemma4,
// lfm2, lfm2_moe, llama4, ministral3, qwen3_5, qwen3_5_moe and qwen3_next). Missing options have
// the defaults of those classes; missing sizes are errors.
type hfLater struct {
	Conv       int   `json:"linear_conv_kernel_dim"`
	KeyDims    int   `json:"linear_key_head_dim"`
	ValueDims  int   `json:"linear_value_head_dim"`
	KeyHeads   int   `json:"linear_num_key_heads"`
	ValueHeads int   `json:"linear_num_value_heads"`
	FullEvery  int   `json:"full_attention_interval"`
	OutputGate *bool `json:"attn_output_gate"`

	NormEps    float64 `json:"norm_eps"`
	ShortConv  int     `json:"conv_L_cache"`
	ConvBias   bool    `json:"conv_bias"`
	BlockFFN   int     `json:"block_ff_dim"`
	BlockTimes float64 `json:"block_ffn_dim_multiplier"`
	BlockOf    int     `json:"block_multiple_of"`
	BlockAuto  *bool   `json:"block_auto_adjust_ff_dim"`
	FullLayers []int   `json:"full_attn_idxs"`
	TiedOld    *bool   `json:"tie_embedding"`

	DenseLayersFirst int `json:"num_dense_layers"`

	FarHeadDim int     `json:"global_head_dim"`
	FarKVHeads int     `json:"num_global_key_value_heads"`
	Inputs     hfCount `json:"hidden_size_per_layer_input"`
	InputVocab int     `json:"vocab_size_per_layer_input"`
	KeysValues bool    `json:"attention_k_eq_v"`
	SharedKV   int     `json:"num_kv_shared_layers"`
	HasExperts bool    `json:"enable_moe_block"`
	DoubleWide bool    `json:"use_double_wide_mlp"`
	TopExperts int     `json:"top_k_experts"`
	// a boolean, or in gemma4 the tokens that it applies to
	UseBidirectional json.RawMessage `json:"use_bidirectional_attention"`

	DenseFFN          int             `json:"intermediate_size_mlp"`
	ExpertEvery       int             `json:"interleave_moe_layer_step"`
	ExpertsIn         []int           `json:"moe_layers"`
	HeadNorms         *bool           `json:"use_qk_norm"`
	Rotated           []int           `json:"no_rope_layers"`
	PlainEvery        int             `json:"no_rope_layer_interval"`
	ChunkSize         hfCount         `json:"attention_chunk_size"`
	TemperatureTuning json.RawMessage `json:"attn_temperature_tuning"`
	TemperatureFloor  int             `json:"floor_scale"`
	TemperatureScale  float64         `json:"attn_scale"`
}

// hfCount is a number that may be null (0), which differs from a missing one.
type hfCount struct {
	value int
	given bool
}

// UnmarshalJSON reads a number, or null as 0.
func (n *hfCount) UnmarshalJSON(data []byte) error {
	n.given = true
	return json.Unmarshal(data, &n.value)
}

// or returns the number, or the default if the file has none.
func (n hfCount) or(otherwise int) int {
	if n.given {
		return n.value
	}
	return otherwise
}

// text returns the text part of a multimodal model, with the fields that apply to all parts.
func (h *HF) text() (HF, error) {
	t := *h.Text
	switch {
	case t.Tied == nil:
		t.Tied = h.Tied
	case h.Tied != nil && *h.Tied != *t.Tied:
		return t, fmt.Errorf("tie_word_embeddings %v with %v in text_config is %w", *h.Tied, *t.Tied,
			ErrUnsupported)
	}
	if t.DType+t.DTypeNew == "" {
		t.DType, t.DTypeNew = h.DType, h.DTypeNew
	}
	t.Name = cmp.Or(t.Name, h.Name)
	return t, nil
}

// require returns an error that names the sizes which are zero.
func (h *HF) require(sizes map[string]int) error {
	var missing []string
	for name, n := range sizes {
		if n == 0 {
			missing = append(missing, name)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	slices.Sort(missing) // maps have no order
	return fmt.Errorf("a config.json of %s without %s is %w: give the sizes", h.ModelType, anyOf(missing),
		ErrUnsupported)
}

// kinds returns which layers are of a kind by layer_types, nil if the file does not have it. It
// fails for a kind that is neither given nor in others.
func (h *HF) kinds(kind string, others ...string) (out []bool, err error) {
	if h.LayerTypes != nil && len(h.LayerTypes) != h.Layers {
		return nil, fmt.Errorf("layer_types has %d entries for %d layers", len(h.LayerTypes), h.Layers)
	}
	for _, is := range h.LayerTypes {
		if is != kind && !slices.Contains(others, is) {
			return nil, fmt.Errorf("layer type %.40q in layer_types is %w in %s", is, ErrUnsupported, h.ModelType)
		}
		out = append(out, is == kind)
	}
	return out, nil
}

// delta reads the sizes of the delta rule, and which layers have it.
func (h *HF) delta(c *Config) error {
	if err := h.require(map[string]int{"head_dim": h.HeadDim, "num_key_value_heads": h.KVHeads}); err != nil {
		return err
	}
	if h.OutputGate != nil && !*h.OutputGate {
		return fmt.Errorf("attention without attn_output_gate is %w in %s", ErrUnsupported, h.ModelType)
	}
	c.Recurrence = Recurrence{Conv: h.Conv, KeyHeads: h.KeyHeads, ValueHeads: h.ValueHeads, KeyDim: h.KeyDims,
		ValueDim: h.ValueDims, Every: cmp.Or(h.FullEvery, 4)}
	layers, err := h.kinds("linear_attention", "full_attention")
	if err != nil {
		return err
	}
	if c.Recurrence.Every < 1 {
		return fmt.Errorf("full_attention_interval is %d, not a positive number", h.FullEvery)
	}
	if layers != nil && !c.Recurrence.like(layers) {
		c.Recurrence.Layers = layers
	}
	if h.Rope == nil || h.Rope.Rotary == 0 {
		h.Rotary = cmp.Or(h.Rotary, 0.25)
	}
	h.partialRotary(c)
	return nil
}

// like reports whether a list equals the layers of the period.
func (r Recurrence) like(layers []bool) bool {
	for i, has := range layers {
		if has != r.Has(i) {
			return false
		}
	}
	return true
}

// deltaExperts reads delta rule and experts, whose weights must be normalized.
func (h *HF) deltaExperts(c *Config) error {
	if h.NormTopK != nil && !*h.NormTopK {
		return fmt.Errorf("norm_topk_prob false is %w in %s", ErrUnsupported, h.ModelType)
	}
	c.Experts = Experts{Count: h.Experts, Used: h.ExpertsUsed, FFN: h.ExpertFFN, Shared: h.SharedFFN}
	c.FFN = cmp.Or(c.FFN, h.ExpertFFN) // no layer has a dense feed-forward
	if err := h.require(map[string]int{"shared_expert_intermediate_size": h.SharedFFN}); err != nil {
		return err
	}
	return h.delta(c)
}

// lfm2 reads which layers have attention, and computes the width of the feed-forward.
func (h *HF) lfm2(c *Config) error {
	if h.ConvBias {
		return fmt.Errorf("convolutions with a bias (conv_bias) are %w", ErrUnsupported)
	}
	c.Recurrence.Conv, c.Eps = h.ShortConv, cmp.Or(h.NormEps, c.Eps)
	c.Tied = true
	for _, tied := range []*bool{h.Tied, h.TiedOld} {
		if tied != nil {
			c.Tied = *tied
		}
	}
	if c.FFN = cmp.Or(h.BlockFFN, h.FFN); h.ModelType != "lfm2_moe" && (h.BlockAuto == nil || *h.BlockAuto) {
		of := cmp.Or(h.BlockOf, 256)
		n := int(cmp.Or(h.BlockTimes, 1) * float64(2*c.FFN/3))
		if of < 1 || n < 1 || n > 1<<20 {
			return fmt.Errorf("a feed-forward of %d rounded to a multiple of %d (block_multiple_of) is out of range",
				n, of)
		}
		c.FFN = (n + of - 1) / of * of
	}
	attends, err := h.kinds("full_attention", "conv")
	if err != nil {
		return err
	}
	if attends == nil && h.FullLayers == nil {
		return h.require(map[string]int{"layer_types": 0})
	}
	if err := h.require(map[string]int{"conv_L_cache": h.ShortConv}); err != nil {
		return err
	}
	if h.Layers < 1 || h.Layers > 1<<10 {
		return nil // Check returns the error
	}
	c.KVHeadsOf = make([]int, h.Layers)
	for i := range c.KVHeadsOf {
		if attends != nil && attends[i] || attends == nil && slices.Contains(h.FullLayers, i) {
			c.KVHeadsOf[i] = c.KVHeads
		}
	}
	return nil
}

// lfm2Experts reads experts in addition. Their weights must be normalized.
func (h *HF) lfm2Experts(c *Config) error {
	if (h.NormTopK != nil && !*h.NormTopK) || cmp.Or(h.RoutedTimes, 1) != 1 {
		return fmt.Errorf("norm_topk_prob false or a routed_scaling_factor other than 1 is %w in %s",
			ErrUnsupported, h.ModelType)
	}
	c.Experts = Experts{Count: h.Experts, Used: h.ExpertsUsed, FFN: h.ExpertFFN, Dense: h.DenseLayersFirst}
	c.Gating = Router{Score: Sigmoid, Norm: true}
	return h.lfm2(c)
}

// ministral reads the attention temperature.
func (h *HF) ministral(c *Config) error {
	if h.Rope == nil {
		return h.require(map[string]int{"rope_parameters": 0})
	}
	if c.AttnTemperature = h.Rope.AttnTemperature; !(c.AttnTemperature >= 0) {
		return fmt.Errorf("llama_4_scaling_beta is %v: it must not be negative", c.AttnTemperature)
	}
	return h.require(map[string]int{"head_dim": h.HeadDim, "num_key_value_heads": h.KVHeads})
}
