package model

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
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

	Activation    string   `json:"hidden_activation"`
	LayerTypes    []string `json:"layer_types"`
	QueryScalar   float64  `json:"query_pre_attn_scalar"`
	AttnCap       float64  `json:"attn_logit_softcapping"`
	LogitCap      float64  `json:"final_logit_softcapping"`
	LocalTheta    float64  `json:"rope_local_base_freq"`
	Rotary        float64  `json:"partial_rotary_factor"`
	LocalExperts  int      `json:"num_local_experts"`
	Original      int      `json:"original_max_position_embeddings"`
	EmbedTimes    float64  `json:"embedding_multiplier"`
	ResidualTimes float64  `json:"residual_multiplier"`
	AttnTimes     float64  `json:"attention_multiplier"`
	LogitsBy      float64  `json:"logits_scaling"`
	SharedFFN     int      `json:"shared_expert_intermediate_size"`
	SharedAlone   int      `json:"shared_intermediate_size"`
	LatentQ       *int     `json:"q_lora_rank"`
	LatentKV      int      `json:"kv_lora_rank"`
	KeyRest       int      `json:"qk_nope_head_dim"`
	KeyRotated    int      `json:"qk_rope_head_dim"`
	ValueDim      int      `json:"v_head_dim"`
	Routed        int      `json:"n_routed_experts"`
	SharedCount   int      `json:"n_shared_experts"`
	DenseFirst    int      `json:"first_k_dense_replace"`
	Scoring       string   `json:"scoring_func"`
	RoutedTimes   float64  `json:"routed_scaling_factor"`
	Groups        int      `json:"n_group"`
	GroupsUsed    int      `json:"topk_group"`
	Text          *HF      `json:"text_config"` // the text part of a multimodal model
	hfLater
	hfEncoder
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
	var h HF
	if err := json.Unmarshal(data, &h); err != nil {
		return Config{}, 0, fmt.Errorf("invalid config.json: %w", err)
	}
	if h.Text != nil && h.Hidden == 0 {
		var err error
		if h, err = h.text(); err != nil {
			return Config{}, 0, err
		}
	}
	arch, err := archOfHF(&h)
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
		if err := arch.ReadHF(&h, &c); err != nil {
			return Config{}, 0, err
		}
	}
	if err := h.rope(&c, arch.Knows); err != nil {
		return Config{}, 0, err
	}
	if err := h.pooled(&c, readFile); err != nil {
		return Config{}, 0, err
	}
	return c, h.dtype(), c.Check()
}

// check returns an error for a feature that is neither common to all families nor in known.
func (h HF) check(known []string) error {
	knows := func(what string) bool { return slices.Contains(known, what) }
	sliding := h.Sliding != nil && *h.Sliding < h.Context
	if h.UseSliding != nil {
		sliding = *h.UseSliding
	}
	if h.Activation != "" {
		h.Act = h.Activation
	}
	switch {
	case h.Act != "" && h.Act != "silu" && !knows("acts") && !(knows("gelu") && h.Act == "gelu_pytorch_tanh"):
		return fmt.Errorf("hidden_act %q is %w: it must be silu", h.Act, ErrUnsupported)
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
func (h HF) rope(c *Config, known []string) error {
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
func (h HF) dtype() gguf.Type {
	switch strings.TrimPrefix(h.DTypeNew+h.DType, "torch.") {
	case "float32":
		return gguf.F32
	case "float16":
		return gguf.F16
	}
	return gguf.BF16
}

// gemma reads windows, soft caps and scale of Gemma's configurations, with Gemma's defaults.
func (h *HF) gemma(c *Config, period int) {
	c.Windows, c.Tied = h.windows(period), h.Tied == nil || *h.Tied
	c.Scales = Scales{AttnCap: h.AttnCap, LogitCap: h.LogitCap}
	if h.QueryScalar > 0 && h.QueryScalar != float64(c.HeadDim) {
		c.Scales.Attn = 1 / math.Sqrt(h.QueryScalar)
	}
}

// latent reads the sizes of latent attention, with matrices per head, and of the experts.
func (h *HF) latent(c *Config) error {
	l := Latent{KV: h.LatentKV, Key: h.KeyRest + h.KeyRotated, Value: h.ValueDim, Split: true}
	if h.LatentQ != nil {
		l.Q = *h.LatentQ
	}
	c.Latent, c.RopeDim, c.HeadDim, c.KVHeads = l, h.KeyRotated, h.LatentKV+h.KeyRotated, 1
	c.Experts = Experts{Count: h.Routed, Used: h.ExpertsUsed, FFN: h.ExpertFFN, Shared: h.SharedCount * h.ExpertFFN,
		Dense: h.DenseFirst}
	c.Gating = Router{Scale: float32(cmp.Or(h.RoutedTimes, 1)), Norm: h.NormTopK != nil && *h.NormTopK,
		Groups: h.Groups, GroupsUsed: h.GroupsUsed}
	switch h.Scoring {
	case "", "softmax":
	case "sigmoid":
		c.Gating.Score = Sigmoid
	default:
		return fmt.Errorf("scoring_func %q is %w: it must be softmax or sigmoid", h.Scoring, ErrUnsupported)
	}
	return nil
}

// granite reads the scale factors of Granite's models.
func (h *HF) granite(c *Config) {
	c.Scales = Scales{Embed: h.EmbedTimes, Residual: h.ResidualTimes, Attn: h.AttnTimes, Logits: h.LogitsBy}
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
