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

// hfEncoder holds fields of encoders and of models that score texts. Names and defaults are those
// of the configuration classes of bert, xlm_roberta and nomic_bert in transformers 5, and of the
// older nomic_bert, whose sizes have the names of GPT-2.
type hfEncoder struct {
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

// gemmaBidirectional is the family name of gemma3 with bidirectional attention.
const gemmaBidirectional = "gemma3_text with use_bidirectional_attention"

// family returns the model_type, or a name for one of two families with the same model_type.
func (h *HF) family() string {
	if h.ModelType == "gemma3_text" && string(h.UseBidirectional) == "true" {
		return gemmaBidirectional
	}
	return h.ModelType
}

// gpt2 reads sizes that have the names of GPT-2.
func (h *HF) gpt2() {
	h.Hidden, h.Layers = cmp.Or(h.Hidden, h.OldHidden), cmp.Or(h.Layers, h.OldLayers)
	h.Heads, h.FFN = cmp.Or(h.Heads, h.OldHeads), cmp.Or(h.FFN, h.OldFFN)
	h.Context = cmp.Or(h.Context, h.OldTrained, h.OldContext)
	h.LayerEps, h.RopeTheta = cmp.Or(h.LayerEps, h.OldEps), cmp.Or(h.RopeTheta, h.OldTheta)
	h.Act = cmp.Or(h.OldAct, h.Act)
}

// module is an entry of modules.json: one stage of a sentence-transformers model.
type module struct {
	Path string `json:"path"`
	Type string `json:"type"`
}

// pooled reads pooling, projections and scores of a model that embeds or scores texts, from its
// architecture or from modules.json. An encoder without modules has mean pooling, the default of
// sentence-transformers.
func (h *HF) pooled(c *Config, readFile func(string) ([]byte, error)) error {
	if h.Causal != nil && !*h.Causal || string(h.UseBidirectional) == "true" {
		c.Bidirectional = true
	}
	if c.Bidirectional {
		c.Pooling = MeanPooling
	}
	for _, name := range h.Architecture {
		switch {
		case strings.HasSuffix(name, "ForSequenceClassification"):
			return h.scores(c)
		case strings.HasSuffix(name, "ForTokenClassification"), strings.HasSuffix(name, "ForQuestionAnswering"),
			strings.HasSuffix(name, "ForMultipleChoice"), strings.HasSuffix(name, "ForNextSentencePrediction"):
			return fmt.Errorf("architecture %.80q is %w: use a model that embeds, scores or generates texts", name,
				ErrUnsupported)
		}
	}
	var modules []module
	if err := readJSON(readFile, "modules.json", &modules); errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	c.Pooling = NoPooling
	for i, m := range modules {
		if err := h.module(c, m, readFile); err != nil {
			return fmt.Errorf("modules.json, module %d: %w", i, err)
		}
	}
	if c.Pooling == NoPooling {
		return errors.New("modules.json has no Pooling module")
	}
	return nil
}

// scores reads the head of a classifier, which has two scores by default.
func (h *HF) scores(c *Config) error {
	n := cmp.Or(len(h.Labels), h.LabelsN, 2)
	c.Pooling, c.Scoring = LastPooling, Scoring{Count: n, Share: true}
	if c.Bidirectional {
		c.Pooling, c.Scoring = FirstPooling, Scoring{Count: n, Dense: true}
	}
	return nil
}

// module adds a stage after the layers.
func (h *HF) module(c *Config, m module, readFile func(string) ([]byte, error)) error {
	config := filepath.Join(m.Path, "config.json")
	switch kind := m.Type[strings.LastIndexByte(m.Type, '.')+1:]; kind {
	case "Transformer", "Normalize", "Dropout":
		return nil
	case "Pooling":
		return h.poolBy(c, config, readFile)
	case "Dense":
		var d struct {
			In  int    `json:"in_features"`
			Out int    `json:"out_features"`
			Act string `json:"activation_function"`
		}
		if err := readJSON(readFile, config, &d); err != nil {
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
			return fmt.Errorf("a Dense module from %d to %d numbers does not fit a vector of %d", d.In, d.Out, width)
		}
		c.Dense = append(c.Dense, d.Out)
		return nil
	default:
		return fmt.Errorf("module type %.80q is %w: it must be Transformer, Pooling, Dense, Normalize or Dropout",
			m.Type, ErrUnsupported)
	}
}

// poolBy reads the pooling mode: one of several boolean options or, since sentence-transformers 5,
// a name.
func (h *HF) poolBy(c *Config, config string, readFile func(string) ([]byte, error)) error {
	var by map[string]json.RawMessage
	if err := readJSON(readFile, config, &by); err != nil {
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
	slices.Sort(modes) // maps have no order
	switch kind, known := names[strings.Join(modes, " and ")]; {
	case len(modes) == 0:
		return fmt.Errorf("%s has no pooling_mode", config)
	case !known:
		return fmt.Errorf("pooling mode %.80q is %w: it must be cls_token, mean_tokens or lasttoken",
			strings.Join(modes, " and "), ErrUnsupported)
	default:
		c.Pooling = kind
	}
	return nil
}

// readJSON decodes a JSON file by its path relative to the config.json.
func readJSON(readFile func(string) ([]byte, error), name string, to any) error {
	switch {
	case readFile == nil:
		return fs.ErrNotExist
	case !filepath.IsLocal(name):
		return fmt.Errorf("path %.80q is outside the model's folder", name)
	}
	data, err := readFile(name)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, to); err != nil {
		return fmt.Errorf("invalid %s: %w", name, err)
	}
	return nil
}
