// Package hf reads a Hugging Face config.json: the fields that families share. A family reads its
// own fields by File.Decode.
package hf

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"sandwich/runtime/gguf"
	"sandwich/runtime/model"
)

// File holds the fields of a Hugging Face config.json that several families have.
type File struct {
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
	RopeScaling  *Rope    `json:"rope_scaling"`
	Rope         *Rope    `json:"rope_parameters"` // since transformers 5 both of the above in one
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
	encoderFields

	data     []byte // of the file, or of its text part
	defaults []byte // JSON with values of fields that data lacks; nil: none
}

// Parse decodes a config.json. It returns the text part of a multimodal model, with the fields
// that apply to all parts.
func Parse(data []byte) (*File, error) {
	h := &File{data: data}
	if err := h.Decode(h); err != nil {
		return nil, err
	}
	if len(h.Text) == 0 || string(h.Text) == "null" || h.Hidden != 0 {
		return h, nil
	}
	t := &File{data: h.Text}
	if err := t.Decode(t); err != nil {
		return nil, err
	}
	switch {
	case t.Tied == nil:
		t.Tied = h.Tied
	case h.Tied != nil && *h.Tied != *t.Tied:
		return nil, fmt.Errorf("tie_word_embeddings %v with %v in text_config is %w", *h.Tied, *t.Tied,
			model.ErrUnsupported)
	}
	if t.DType+t.DTypeNew == "" {
		t.DType, t.DTypeNew = h.DType, h.DTypeNew
	}
	t.Name = cmp.Or(t.Name, h.Name)
	return t, nil
}

// Default sets fields that the file lacks, also for Decode. defaults is a JSON object in the form
// of config.json.
func (h *File) Default(defaults string) error {
	t := &File{data: h.data, defaults: []byte(defaults)}
	if err := t.Decode(t); err != nil {
		return err
	}
	if h.Tied != nil { // the fields that Parse completes
		t.Tied = h.Tied
	}
	t.DType, t.DTypeNew, t.Name = h.DType, h.DTypeNew, h.Name
	*h = *t
	return nil
}

// Decode reads further fields of the file, those of one family.
func (h *File) Decode(to any) error {
	for _, data := range [][]byte{h.defaults, h.data} {
		if data == nil {
			continue
		}
		err := json.Unmarshal(data, to)
		var wrong *json.UnmarshalTypeError
		switch {
		case errors.As(err, &wrong) && wrong.Field != "":
			return fmt.Errorf("invalid config.json: %s must be %s, not %s", wrong.Field, kindOf(wrong.Type),
				wrong.Value)
		case errors.As(err, &wrong):
			return fmt.Errorf("invalid config.json: it must be an object, not %s", wrong.Value)
		case err != nil:
			return fmt.Errorf("invalid config.json: %w", err)
		}
	}
	return nil
}

// kindOf names the JSON value that a field accepts.
func kindOf(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.String:
		return "a string"
	case reflect.Slice:
		return "a list"
	case reflect.Struct, reflect.Map:
		return "an object"
	case reflect.Float32, reflect.Float64:
		return "a number"
	}
	return "an integer"
}

// Check returns an error for a feature that is neither common to all families nor in known.
func (h *File) Check(known []string) error {
	knows := func(what string) bool { return slices.Contains(known, what) }
	sliding := h.Sliding != nil && *h.Sliding < h.Context
	if h.UseSliding != nil {
		sliding = *h.UseSliding
	}
	act := cmp.Or(h.Activation, h.Act)
	switch {
	case act != "" && act != "silu" && !knows("acts") && !(knows("gelu") && act == "gelu_pytorch_tanh"):
		return fmt.Errorf("hidden_act %q is %w: it must be silu", act, model.ErrUnsupported)
	case (h.AttnBias || h.MLPBias) && !knows("biases"):
		return fmt.Errorf("attention_bias and mlp_bias are %w in %s", model.ErrUnsupported, h.ModelType)
	case sliding && !knows("windows"):
		return fmt.Errorf("a sliding attention window is %w", model.ErrUnsupported)
	case h.SparseStep != nil && *h.SparseStep != 1 || len(h.DenseLayers) > 0:
		return fmt.Errorf("dense layers among expert layers are %w", model.ErrUnsupported)
	}
	return nil
}

// TensorType returns the tensor type of the checkpoint.
func (h *File) TensorType() gguf.Type {
	switch strings.TrimPrefix(h.DTypeNew+h.DType, "torch.") {
	case "float32":
		return gguf.F32
	case "float16":
		return gguf.F16
	}
	return gguf.BF16
}

// encoderFields holds fields of encoders and of models that score texts. Names and defaults are
// those of the configuration classes of bert, xlm_roberta and nomic_bert in transformers 5, and of
// the older nomic_bert, whose sizes have the names of GPT-2.
type encoderFields struct {
	LayerEps float64                    `json:"layer_norm_eps"`
	Causal   *bool                      `json:"is_causal"`
	Labels   map[string]json.RawMessage `json:"id2label"`
	LabelsN  int                        `json:"num_labels"`

	OldHidden  int     `json:"n_embd"`
	OldLayers  int     `json:"n_layer"`
	OldHeads   int     `json:"n_head"`
	OldFFN     int     `json:"n_inner"`
	OldContext int     `json:"n_positions"`
	OldTrained int     `json:"max_trained_positions"`
	OldEps     float64 `json:"layer_norm_epsilon"`
	OldAct     string  `json:"activation_function"`
	OldTheta   float64 `json:"rotary_emb_base"`

	// a boolean, or in gemma4 the tokens that it applies to
	UseBidirectional json.RawMessage `json:"use_bidirectional_attention"`
}

// GemmaBidirectional is the family name of gemma3 with bidirectional attention.
const GemmaBidirectional = "gemma3_text with use_bidirectional_attention"

// Family returns the model_type, except for bidirectional Gemma 3 models: they share the
// model_type gemma3_text with others, so Family returns GemmaBidirectional for them.
func (h *File) Family() string {
	if h.ModelType == "gemma3_text" && string(h.UseBidirectional) == "true" {
		return GemmaBidirectional
	}
	return h.ModelType
}

// UseGPT2Names reads sizes that have the names of GPT-2.
func (h *File) UseGPT2Names() {
	h.Hidden, h.Layers = cmp.Or(h.Hidden, h.OldHidden), cmp.Or(h.Layers, h.OldLayers)
	h.Heads, h.FFN = cmp.Or(h.Heads, h.OldHeads), cmp.Or(h.FFN, h.OldFFN)
	h.Context = cmp.Or(h.Context, h.OldTrained, h.OldContext)
	h.LayerEps, h.RopeTheta = cmp.Or(h.LayerEps, h.OldEps), cmp.Or(h.RopeTheta, h.OldTheta)
	h.Act = cmp.Or(h.OldAct, h.Act)
}
