package model

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"sandwich/runtime/gguf"
)

// HF holds the fields of a Hugging Face config.json that FromHF reads.
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

	Activation   string   `json:"hidden_activation"`
	LayerTypes   []string `json:"layer_types"`
	LogitCap     float64  `json:"final_logit_softcapping"`
	Rotary       float64  `json:"partial_rotary_factor"`
	LocalExperts int      `json:"num_local_experts"`
	SharedFFN    int      `json:"shared_expert_intermediate_size"`
	RoutedTimes  float64  `json:"routed_scaling_factor"`

	Text json.RawMessage `json:"text_config"` // the text part of a multimodal model
	hfEncoder

	data []byte // of the file, or of its text part
}

// sliding returns the size of windows, 0 for none.
func (h *HF) sliding() int {
	if h.Sliding == nil {
		return 0
	}
	return *h.Sliding
}

// windows returns the windowed layers: those of layer_types if the file has it, else all but the
// last layer of each period.
func (h *HF) windows(period int) Windows {
	w := Windows{Size: h.sliding(), Period: period}
	for i, kind := range h.LayerTypes {
		if has := kind == "sliding_attention"; has != w.Has(i) { // the list differs from the period
			w.Layers = nil
			for _, kind := range h.LayerTypes {
				w.Layers = append(w.Layers, kind == "sliding_attention")
			}
			break
		}
	}
	return w
}

// hfRope holds the parameters of a rotation in a config.json.
type hfRope struct {
	Theta           float64 `json:"rope_theta"`
	Type            string  `json:"rope_type"`
	OldType         string  `json:"type"`
	Factor          float64 `json:"factor"`
	Low             float64 `json:"low_freq_factor"`
	High            float64 `json:"high_freq_factor"`
	Original        int     `json:"original_max_position_embeddings"`
	Log             float64 `json:"mscale_all_dim"`
	Fast            float64 `json:"beta_fast"`
	Slow            float64 `json:"beta_slow"`
	Rotary          float64 `json:"partial_rotary_factor"`
	AttnTemperature float64 `json:"llama_4_scaling_beta"`
	Far             *hfRope `json:"full_attention"` // if kinds of layers have different rotations
	Near            *hfRope `json:"sliding_attention"`
}

// FromHF returns the configuration of a Hugging Face config.json and the tensor type of its
// checkpoint, bf16 if the file does not give it. It returns an error that names the first feature
// which this program cannot run, such as an unsupported RoPE scaling. readFile reads a file by its
// path relative to the config.json, to find the pooling of sentence-transformers models; it returns
// fs.ErrNotExist for a missing file. nil means that there are no other files.
func FromHF(data []byte, readFile func(name string) ([]byte, error)) (Config, gguf.Type, error) {
	h, err := parseHF(data)
	if err != nil {
		return Config{}, 0, err
	}
	arch, err := archOfHF(h)
	if err != nil {
		return Config{}, 0, err
	}
	if err := h.check(arch.Knows); err != nil {
		return Config{}, 0, err
	}
	if slices.Contains(arch.Knows, "gpt2") {
		h.gpt2()
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
		if err := arch.ReadHF(h, &c); err != nil {
			return Config{}, 0, err
		}
	}
	if err := h.rope(&c, arch.Knows); err != nil {
		return Config{}, 0, err
	}
	if err := h.pooled(&c, readFile); err != nil {
		return Config{}, 0, err
	}
	return c, h.dtype(), checkConfig(c)
}

// parseHF decodes a config.json. It returns the text part of a multimodal model, with the fields
// that apply to all parts.
func parseHF(data []byte) (*HF, error) {
	h := &HF{data: data}
	if err := h.decode(h); err != nil {
		return nil, err
	}
	if len(h.Text) == 0 || string(h.Text) == "null" || h.Hidden != 0 {
		return h, nil
	}
	t := &HF{data: h.Text}
	if err := t.decode(t); err != nil {
		return nil, err
	}
	switch {
	case t.Tied == nil:
		t.Tied = h.Tied
	case h.Tied != nil && *h.Tied != *t.Tied:
		return nil, fmt.Errorf("tie_word_embeddings %v with %v in text_config is %w", *h.Tied, *t.Tied,
			ErrUnsupported)
	}
	if t.DType+t.DTypeNew == "" {
		t.DType, t.DTypeNew = h.DType, h.DTypeNew
	}
	t.Name = cmp.Or(t.Name, h.Name)
	return t, nil
}

// decode reads further fields of the file, those of one family.
func (h *HF) decode(to any) error {
	if err := json.Unmarshal(h.data, to); err != nil {
		return fmt.Errorf("invalid config.json: %w", err)
	}
	return nil
}

// check returns an error for a feature that is neither common to all families nor in known.
func (h *HF) check(known []string) error {
	knows := func(what string) bool { return slices.Contains(known, what) }
	sliding := h.Sliding != nil && *h.Sliding < h.Context
	if h.UseSliding != nil {
		sliding = *h.UseSliding
	}
	act := cmp.Or(h.Activation, h.Act)
	switch {
	case act != "" && act != "silu" && !knows("acts") && !(knows("gelu") && act == "gelu_pytorch_tanh"):
		return fmt.Errorf("hidden_act %q is %w: it must be silu", act, ErrUnsupported)
	case (h.AttnBias || h.MLPBias) && !knows("biases"):
		return fmt.Errorf("attention_bias and mlp_bias are %w in %s", ErrUnsupported, h.ModelType)
	case sliding && !knows("windows"):
		return fmt.Errorf("a sliding attention window is %w", ErrUnsupported)
	case h.SparseStep != nil && *h.SparseStep != 1 || len(h.DenseLayers) > 0:
		return fmt.Errorf("dense layers among expert layers are %w", ErrUnsupported)
	}
	return nil
}

// rope reads base and scaling of the rotation.
func (h *HF) rope(c *Config, known []string) error {
	r := h.RopeScaling
	if h.Rope != nil {
		if r = h.Rope; r.Far != nil {
			r = r.Far
		}
		c.RopeBase = r.Theta
	}
	if c.RopeBase == 0 {
		c.RopeBase = 10000
	}
	if r == nil {
		return nil
	}
	kind := r.kind()
	switch kind {
	case "", "default":
		return nil
	case "llama3":
		c.Llama3 = &Llama3Rope{Factor: r.Factor, Low: r.Low, High: r.High, Original: r.Original}
		return nil
	}
	if slices.Contains(known, kind) {
		switch kind {
		case "yarn":
			c.Yarn = &Yarn{Factor: r.Factor, Original: cmp.Or(r.Original, c.Context), Fast: cmp.Or(r.Fast, 32),
				Slow: cmp.Or(r.Slow, 1), Log: r.Log}
		case "linear":
			c.RopeScale = 1 / r.Factor
		}
		return nil
	}
	return fmt.Errorf("RoPE scaling %q is %w", kind, ErrUnsupported)
}

// dtype returns the tensor type of the checkpoint.
func (h *HF) dtype() gguf.Type {
	switch strings.TrimPrefix(h.DTypeNew+h.DType, "torch.") {
	case "float32":
		return gguf.F32
	case "float16":
		return gguf.F16
	}
	return gguf.BF16
}

// kind returns the name of the scaling rule, "" for none.
func (r *hfRope) kind() string { return cmp.Or(r.Type, r.OldType) }

// partialRotary reads the part of a head that rotates.
func (h *HF) partialRotary(c *Config) {
	if h.Rope != nil && h.Rope.Rotary > 0 {
		h.Rotary = h.Rope.Rotary
	}
	if h.Rotary > 0 && h.Rotary < 1 {
		c.RopeDim = int(h.Rotary * float64(c.HeadDim))
	}
}
