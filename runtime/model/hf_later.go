package model

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
)

// hfLater are fields of families since 2025: names and defaults are those of the configuration
// classes of Hugging Face's transformers (src/transformers/models/FAMILY/configuration_FAMILY.py of
// gemma4, lfm2, lfm2_moe, llama4, ministral3, qwen3_5, qwen3_5_moe and qwen3_next, as of version
// 5). What they leave out has the default there where that is an option, and is asked for where it
// is a size.
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
	// true, and in gemma4 what it is for
	BothWays json.RawMessage `json:"use_bidirectional_attention"`

	DenseFFN    int             `json:"intermediate_size_mlp"`
	ExpertEvery int             `json:"interleave_moe_layer_step"`
	ExpertsIn   []int           `json:"moe_layers"`
	HeadNorms   *bool           `json:"use_qk_norm"`
	Rotated     []int           `json:"no_rope_layers"`
	PlainEvery  int             `json:"no_rope_layer_interval"`
	ChunkSize   hfCount         `json:"attention_chunk_size"`
	Tempers     json.RawMessage `json:"attn_temperature_tuning"`
	TemperFloor int             `json:"floor_scale"`
	TemperScale float64         `json:"attn_scale"`
}

// hfCount is a number that may be null, which is another thing than none.
type hfCount struct {
	value int
	given bool
}

// UnmarshalJSON reads a number, or null as 0.
func (n *hfCount) UnmarshalJSON(data []byte) error {
	n.given = true
	return json.Unmarshal(data, &n.value)
}

// or is the number, or what is meant where none is given.
func (n hfCount) or(otherwise int) int {
	if n.given {
		return n.value
	}
	return otherwise
}

// text is the part of a model that sees which reads and writes text, with what is said of both.
func (h *HF) text() (HF, error) {
	t := *h.Text
	switch {
	case t.Tied == nil:
		t.Tied = h.Tied
	case h.Tied != nil && *h.Tied != *t.Tied:
		return t, fmt.Errorf("tie_word_embeddings is %v and in text_config %v, which is %w", *h.Tied, *t.Tied,
			ErrUnsupported)
	}
	if t.DType+t.DTypeNew == "" {
		t.DType, t.DTypeNew = h.DType, h.DTypeNew
	}
	t.Name = cmp.Or(t.Name, h.Name)
	return t, nil
}

// demands refuses a file that leaves out one of some sizes.
func (h *HF) demands(sizes map[string]int) error {
	var lacks []string
	for name, n := range sizes {
		if n == 0 {
			lacks = append(lacks, name)
		}
	}
	if len(lacks) == 0 {
		return nil
	}
	slices.Sort(lacks) // a map gives them in any order
	return fmt.Errorf("a config.json of %s without %s is %w: give the sizes", h.ModelType, anyOf(lacks), ErrUnsupported)
}

// kinds says which layers are of a kind, by the file's list; nil where it has none.
func (h *HF) kinds(kind string, others ...string) (out []bool, err error) {
	if h.LayerTypes != nil && len(h.LayerTypes) != h.Layers {
		return nil, fmt.Errorf("layer_types has %d entries for %d layers", len(h.LayerTypes), h.Layers)
	}
	for _, is := range h.LayerTypes {
		if is != kind && !slices.Contains(others, is) {
			return nil, fmt.Errorf("layer_types names %.40q, which is %w in %s", is, ErrUnsupported, h.ModelType)
		}
		out = append(out, is == kind)
	}
	return out, nil
}

// delta reads the sizes of a delta rule, and which layers have one.
func (h *HF) delta(c *Config) error {
	if err := h.demands(map[string]int{"head_dim": h.HeadDim, "num_key_value_heads": h.KVHeads}); err != nil {
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
	h.partly(c)
	return nil
}

// like says that a list is what the period says.
func (r Recurrence) like(layers []bool) bool {
	for i, has := range layers {
		if has != r.Has(i) {
			return false
		}
	}
	return true
}

// deltaExperts reads the experts, too. Their weights add up to 1.
func (h *HF) deltaExperts(c *Config) error {
	if h.NormTopK != nil && !*h.NormTopK {
		return fmt.Errorf("experts whose weights do not add up to 1 (norm_topk_prob) are %w", ErrUnsupported)
	}
	c.Experts = Experts{Count: h.Experts, Used: h.ExpertsUsed, FFN: h.ExpertFFN, Shared: h.SharedFFN}
	c.FFN = cmp.Or(c.FFN, h.ExpertFFN) // which no layer has
	if err := h.demands(map[string]int{"shared_expert_intermediate_size": h.SharedFFN}); err != nil {
		return err
	}
	return h.delta(c)
}

// lfm2 reads which layers attend, and the width of the feed-forward by its own rule.
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
			return fmt.Errorf("a feed-forward of %d in steps of %d (block_multiple_of) is not possible", n, of)
		}
		c.FFN = (n + of - 1) / of * of
	}
	attends, err := h.kinds("full_attention", "conv")
	if err != nil {
		return err
	}
	if attends == nil && h.FullLayers == nil {
		return h.demands(map[string]int{"layer_types": 0})
	}
	if err := h.demands(map[string]int{"conv_L_cache": h.ShortConv}); err != nil {
		return err
	}
	if h.Layers < 1 || h.Layers > 1<<10 {
		return nil // which Check refuses
	}
	c.KVHeadsOf = make([]int, h.Layers)
	for i := range c.KVHeadsOf {
		if attends != nil && attends[i] || attends == nil && slices.Contains(h.FullLayers, i) {
			c.KVHeadsOf[i] = c.KVHeads
		}
	}
	return nil
}

// lfm2Experts reads the experts, too. Their weights add up to 1, and what they are chosen by has a
// bias.
func (h *HF) lfm2Experts(c *Config) error {
	if (h.NormTopK != nil && !*h.NormTopK) || cmp.Or(h.RoutedTimes, 1) != 1 {
		return fmt.Errorf("experts whose weights do not add up to 1 (norm_topk_prob, routed_scaling_factor) are %w",
			ErrUnsupported)
	}
	c.Experts = Experts{Count: h.Experts, Used: h.ExpertsUsed, FFN: h.ExpertFFN, Dense: h.DenseLayersFirst}
	c.Gating = Router{Score: Sigmoid, Norm: true}
	return h.lfm2(c)
}

// ministral reads how queries grow.
func (h *HF) ministral(c *Config) error {
	if h.Rope == nil {
		return h.demands(map[string]int{"rope_parameters": 0})
	}
	if c.Temper = h.Rope.Temper; !(c.Temper >= 0) {
		return fmt.Errorf("llama_4_scaling_beta is %v, a negative number", c.Temper)
	}
	return h.demands(map[string]int{"head_dim": h.HeadDim, "num_key_value_heads": h.KVHeads})
}
