package model

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
)

// hfEncoder are fields of encoders, and of models that score texts: names and defaults are those of
// transformers' configuration classes of bert, xlm_roberta and nomic_bert (version 5), and
// of the older nomic_bert, which has those of GPT-2 for sizes.
type hfEncoder struct {
	LayerEps  float64                    `json:"layer_norm_eps"`
	TypeVocab *int                       `json:"type_vocab_size"`
	Pad       *int                       `json:"pad_token_id"`
	Places    string                     `json:"position_embedding_type"`
	Decodes   bool                       `json:"is_decoder"`
	Causal    *bool                      `json:"is_causal"`
	Labels    map[string]json.RawMessage `json:"id2label"`
	LabelsN   int                        `json:"num_labels"`

	OldHidden   int      `json:"n_embd"`
	OldLayers   int      `json:"n_layer"`
	OldHeads    int      `json:"n_head"`
	OldFFN      int      `json:"n_inner"`
	OldContext  int      `json:"n_positions"`
	OldTrained  int      `json:"max_trained_positions"`
	OldEps      float64  `json:"layer_norm_epsilon"`
	OldAct      string   `json:"activation_function"`
	OldTheta    float64  `json:"rotary_emb_base"`
	OldRotary   *float64 `json:"rotary_emb_fraction"`
	Interleaved bool     `json:"rotary_emb_interleaved"`
	BaseScale   *float64 `json:"rotary_emb_scale_base"`
	PreNorm     bool     `json:"prenorm"`
	RMSNorm     bool     `json:"use_rms_norm"`
	Parallel    bool     `json:"parallel_block"`
	QKVBias     bool     `json:"qkv_proj_bias"`
	UpBias      bool     `json:"mlp_fc1_bias"`
	DownBias    bool     `json:"mlp_fc2_bias"`
	MoEEvery    int      `json:"moe_every_n_layers"`
}

// gemmaBothWays is the family of gemma3 whose rows see each other in both directions.
const gemmaBothWays = "gemma3_text with use_bidirectional_attention"

// family is what tells the models of one architecture: the model_type, but for one that two share.
func (h *HF) family() string {
	if h.ModelType == "gemma3_text" && string(h.BothWays) == "true" {
		return gemmaBothWays
	}
	return h.ModelType
}

// gpt2 takes sizes under the names that GPT-2 has for them.
func (h *HF) gpt2() {
	h.Hidden, h.Layers = cmp.Or(h.Hidden, h.OldHidden), cmp.Or(h.Layers, h.OldLayers)
	h.Heads, h.FFN = cmp.Or(h.Heads, h.OldHeads), cmp.Or(h.FFN, h.OldFFN)
	h.Context = cmp.Or(h.Context, h.OldTrained, h.OldContext)
	h.LayerEps, h.RopeTheta = cmp.Or(h.LayerEps, h.OldEps), cmp.Or(h.RopeTheta, h.OldTheta)
	h.Act = cmp.Or(h.OldAct, h.Act)
}

// encoder reads what the encoders have in common, and asks for their sizes.
func (h *HF) encoder(c *Config, acts ...string) error {
	if err := h.demands(map[string]int{"hidden_size": h.Hidden, "num_hidden_layers": h.Layers,
		"num_attention_heads": h.Heads, "intermediate_size": h.FFN, "vocab_size": h.Vocab,
		"max_position_embeddings": h.Context}); err != nil {
		return err
	}
	types := 2
	if h.TypeVocab != nil {
		types = *h.TypeVocab
	}
	c.Eps, c.Both, c.Types, c.Tied = cmp.Or(h.LayerEps, 1e-12), true, types, false
	switch {
	case h.Decodes:
		return fmt.Errorf("a %s that decodes (is_decoder) is %w", h.ModelType, ErrUnsupported)
	case h.Act != "" && !slices.Contains(acts, h.Act):
		return fmt.Errorf("hidden_act %.40q is %w in %s: %s", h.Act, ErrUnsupported, h.ModelType, anyOf(acts))
	case h.HeadDim == 0 && h.Heads > 0 && h.Hidden%h.Heads != 0:
		return fmt.Errorf("hidden_size %d cannot be divided among %d heads (num_attention_heads)", h.Hidden, h.Heads)
	}
	return nil
}

// bert reads the families with learned positions. Those of RoBERTa are counted from behind the
// padding's.
func (h *HF) bert(c *Config) error {
	if err := h.encoder(c, "gelu", "gelu_new", "gelu_pytorch_tanh"); err != nil {
		return err
	}
	if h.Places != "" && h.Places != "absolute" {
		return fmt.Errorf("position_embedding_type %.40q is %w: absolute is", h.Places, ErrUnsupported)
	}
	if h.ModelType == "bert" {
		return nil
	}
	pad := 1
	if h.Pad != nil {
		pad = *h.Pad
	}
	if pad < 0 || pad >= h.Context-1 {
		return fmt.Errorf("max_position_embeddings %d leave no position behind pad_token_id %d", h.Context, pad)
	}
	c.Context -= pad + 1
	return nil
}

// nomic reads nomic-embed-text's encoder, whose q, k and v are one tensor in files.
func (h *HF) nomic(c *Config) error {
	if err := h.encoder(c, "swiglu", "silu"); err != nil {
		return err
	}
	c.Fused, c.RopeBase = true, cmp.Or(h.RopeTheta, 1000)
	var has string
	for name, is := range map[string]bool{"moe_every_n_layers": h.MoEEvery > 0, "prenorm": h.PreNorm,
		"use_rms_norm": h.RMSNorm, "parallel_block": h.Parallel, "rotary_emb_interleaved": h.Interleaved,
		"rotary_emb_scale_base": h.BaseScale != nil, "qkv_proj_bias": h.QKVBias, "mlp_fc1_bias": h.UpBias,
		"mlp_fc2_bias": h.DownBias, "rotary_emb_fraction": h.OldRotary != nil && *h.OldRotary != 1} {
		if is && (has == "" || name < has) { // a map gives them in any order
			has = name
		}
	}
	if has != "" {
		return fmt.Errorf("%s is %w in nomic_bert", has, ErrUnsupported)
	}
	return nil
}

// module is one of those that sentence-transformers makes an embedding by, one after the other.
type module struct {
	Path string `json:"path"`
	Type string `json:"type"`
}

// pooled reads what stands behind the layers of a model that embeds or scores texts: by its
// architecture, or by the modules beside the file. An encoder without any takes the mean, as
// sentence-transformers has it; sizes do not depend on it.
func (h *HF) pooled(c *Config, beside func(string) ([]byte, error)) error {
	if h.Causal != nil && !*h.Causal || string(h.BothWays) == "true" {
		c.Both = true
	}
	if c.Both {
		c.Pooling = MeanPooling
	}
	for _, name := range h.Architecture {
		switch {
		case strings.HasSuffix(name, "ForSequenceClassification"):
			return h.scores(c)
		case strings.HasSuffix(name, "ForTokenClassification"), strings.HasSuffix(name, "ForQuestionAnswering"),
			strings.HasSuffix(name, "ForMultipleChoice"), strings.HasSuffix(name, "ForNextSentencePrediction"):
			return fmt.Errorf("architecture %.80q is %w: models that embed, score or generate texts are", name,
				ErrUnsupported)
		}
	}
	var modules []module
	if err := readBeside(beside, "modules.json", &modules); errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	c.Pooling = NoPooling
	for i, m := range modules {
		if err := h.module(c, m, beside); err != nil {
			return fmt.Errorf("modules.json, module %d: %w", i, err)
		}
	}
	if c.Pooling == NoPooling {
		return errors.New("modules.json names no module that pools rows")
	}
	return nil
}

// scores reads the head of a classifier, whose scores are two where nothing else is said.
func (h *HF) scores(c *Config) error {
	n := cmp.Or(len(h.Labels), h.LabelsN, 2)
	c.Pooling, c.Scoring = LastPooling, Scoring{Count: n, Share: true}
	if c.Both {
		c.Pooling, c.Scoring = FirstPooling, Scoring{Count: n, Dense: true}
	}
	return nil
}

// module adds one module to what is behind the layers.
func (h *HF) module(c *Config, m module, beside func(string) ([]byte, error)) error {
	config := filepath.Join(m.Path, "config.json")
	switch kind := m.Type[strings.LastIndexByte(m.Type, '.')+1:]; kind {
	case "Transformer", "Normalize", "Dropout":
		return nil
	case "Pooling":
		return h.poolBy(c, config, beside)
	case "Dense":
		var d struct {
			In  int    `json:"in_features"`
			Out int    `json:"out_features"`
			Act string `json:"activation_function"`
		}
		if err := readBeside(beside, config, &d); err != nil {
			return err
		}
		width := c.Hidden
		if n := len(c.Dense); n > 0 {
			width = c.Dense[n-1]
		}
		switch {
		case d.Act != "" && !strings.HasSuffix(d.Act, "Identity"):
			return fmt.Errorf("activation_function %.80q is %w", d.Act, ErrUnsupported)
		case d.In != width || d.Out < 1:
			return fmt.Errorf("a product of %d numbers to %d behind a vector of %d is not possible", d.In, d.Out, width)
		}
		c.Dense = append(c.Dense, d.Out)
		return nil
	default:
		return fmt.Errorf("type %.80q is %w: Transformer, Pooling, Dense and Normalize are", m.Type, ErrUnsupported)
	}
}

// poolBy reads how rows become one: by one of some options, or, since sentence-transformers 5, by
// its name.
func (h *HF) poolBy(c *Config, config string, beside func(string) ([]byte, error)) error {
	var by map[string]json.RawMessage
	if err := readBeside(beside, config, &by); err != nil {
		return err
	}
	names := map[string]Pooling{"cls_token": FirstPooling, "mean_tokens": MeanPooling, "lasttoken": LastPooling,
		"cls": FirstPooling, "mean": MeanPooling}
	var modes []string
	for key, value := range by {
		if mode, is := strings.CutPrefix(key, "pooling_mode_"); is && string(value) == "true" {
			modes = append(modes, mode)
		}
	}
	var name string
	if len(modes) == 0 && json.Unmarshal(by["pooling_mode"], &name) == nil {
		modes = append(modes, name)
	}
	slices.Sort(modes) // a map gives them in any order
	switch kind, known := names[strings.Join(modes, " and ")]; {
	case len(modes) == 0:
		return fmt.Errorf("%s has no pooling_mode", config)
	case !known:
		return fmt.Errorf("pooling by %.80q is %w: by cls_token, mean_tokens or lasttoken is",
			strings.Join(modes, " and "), ErrUnsupported)
	default:
		c.Pooling = kind
	}
	return nil
}

// readBeside reads a file beside the configuration.
func readBeside(beside func(string) ([]byte, error), name string, to any) error {
	switch {
	case beside == nil:
		return fs.ErrNotExist
	case !filepath.IsLocal(name):
		return fmt.Errorf("path %.80q leads out of the model's folder", name)
	}
	data, err := beside(name)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, to); err != nil {
		return fmt.Errorf("%s is not valid: %w", name, err)
	}
	return nil
}
