package model

import (
	"encoding/json"
	"fmt"
	"strings"

	"sandwich/runtime/gguf"
)

// HF is the part of a Hugging Face config.json that a configuration is read from.
type HF struct {
	ModelType    string   `json:"model_type"`
	Name         string   `json:"_name_or_path"`
	Hidden       int      `json:"hidden_size"`
	Layers       int      `json:"num_hidden_layers"`
	Heads        int      `json:"num_attention_heads"`
	KVHeads      int      `json:"num_key_value_heads"`
	HeadDim      int      `json:"head_dim"`
	FFN          int      `json:"intermediate_size"`
	Vocab        int      `json:"vocab_size"`
	Context      int      `json:"max_position_embeddings"`
	Eps          float64  `json:"rms_norm_eps"`
	RopeTheta    float64  `json:"rope_theta"`
	RopeScaling  *hfRope  `json:"rope_scaling"`
	Rope         *hfRope  `json:"rope_parameters"` // since transformers 5 both of the above in one
	Tied         *bool    `json:"tie_word_embeddings"`
	DType        string   `json:"torch_dtype"`
	DTypeNew     string   `json:"dtype"`
	Act          string   `json:"hidden_act"`
	AttnBias     bool     `json:"attention_bias"`
	MLPBias      bool     `json:"mlp_bias"`
	UseSliding   *bool    `json:"use_sliding_window"`
	Sliding      *int     `json:"sliding_window"`
	Experts      int      `json:"num_experts"`
	ExpertsUsed  int      `json:"num_experts_per_tok"`
	ExpertFFN    int      `json:"moe_intermediate_size"`
	NormTopK     *bool    `json:"norm_topk_prob"`
	SparseStep   *int     `json:"decoder_sparse_step"`
	DenseLayers  []int    `json:"mlp_only_layers"`
	Architecture []string `json:"architectures"`
}

type hfRope struct {
	Theta    float64 `json:"rope_theta"`
	Type     string  `json:"rope_type"`
	OldType  string  `json:"type"`
	Factor   float64 `json:"factor"`
	Low      float64 `json:"low_freq_factor"`
	High     float64 `json:"high_freq_factor"`
	Original int     `json:"original_max_position_embeddings"`
}

// FromHF reads a Hugging Face config.json. The type is what the checkpoint is stored in, bf16 where
// the file does not say. What the shapes do not show but this program could not run (sliding
// windows, other activations, other RoPE scalings) is refused by name.
func FromHF(data []byte) (Config, gguf.Type, error) {
	var h HF
	if err := json.Unmarshal(data, &h); err != nil {
		return Config{}, 0, fmt.Errorf("no valid config.json: %w", err)
	}
	arch, err := archOfHF(&h)
	if err != nil {
		return Config{}, 0, err
	}
	if err := h.check(); err != nil {
		return Config{}, 0, err
	}
	c := Config{Name: h.Name, Arch: arch.Name, Eps: h.Eps, RopeBase: h.RopeTheta, Tied: h.Tied != nil && *h.Tied,
		Dims: Dims{Hidden: h.Hidden, Layers: h.Layers, Heads: h.Heads, KVHeads: h.KVHeads, HeadDim: h.HeadDim,
			FFN: h.FFN, Vocab: h.Vocab, Context: h.Context}}
	if c.Name == "" {
		c.Name = h.ModelType
	}
	if c.KVHeads == 0 {
		c.KVHeads = c.Heads
	}
	if c.HeadDim == 0 && c.Heads > 0 {
		c.HeadDim = c.Hidden / c.Heads
	}
	if arch.ReadHF != nil {
		if err := arch.ReadHF(&h, &c); err != nil {
			return Config{}, 0, err
		}
	}
	if err := h.rope(&c); err != nil {
		return Config{}, 0, err
	}
	return c, h.dtype(), c.Check()
}

// check refuses what is outside the architectures as this program runs them.
func (h HF) check() error {
	sliding := h.Sliding != nil && *h.Sliding < h.Context
	if h.UseSliding != nil {
		sliding = *h.UseSliding
	}
	switch {
	case h.Act != "" && h.Act != "silu":
		return fmt.Errorf("hidden_act %q is %w: only silu is", h.Act, ErrUnsupported)
	case h.AttnBias || h.MLPBias:
		return fmt.Errorf("attention_bias and mlp_bias are %w in %s", ErrUnsupported, h.ModelType)
	case sliding:
		return fmt.Errorf("a sliding attention window is %w", ErrUnsupported)
	case h.SparseStep != nil && *h.SparseStep != 1 || len(h.DenseLayers) > 0:
		return fmt.Errorf("dense layers among expert layers are %w", ErrUnsupported)
	}
	return nil
}

// rope fills in base and scaling of the rotation.
func (h HF) rope(c *Config) error {
	r := h.RopeScaling
	if h.Rope != nil {
		r = h.Rope
		c.RopeBase = r.Theta
	}
	if c.RopeBase == 0 {
		c.RopeBase = 10000
	}
	if r == nil {
		return nil
	}
	kind := r.Type
	if kind == "" {
		kind = r.OldType
	}
	switch kind {
	case "", "default":
		return nil
	case "llama3":
		c.Llama3 = &Llama3Rope{Factor: r.Factor, Low: r.Low, High: r.High, Original: r.Original}
		return nil
	}
	return fmt.Errorf("RoPE scaling %q is %w", kind, ErrUnsupported)
}

// dtype is the tensor type of the checkpoint.
func (h HF) dtype() gguf.Type {
	switch strings.TrimPrefix(h.DTypeNew+h.DType, "torch.") {
	case "float32":
		return gguf.F32
	case "float16":
		return gguf.F16
	}
	return gguf.BF16
}
