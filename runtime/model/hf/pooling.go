package hf

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"sandwich/runtime/model"
)

// module is an entry of modules.json: one stage of a sentence-transformers model.
type module struct {
	Path string `json:"path"`
	Type string `json:"type"`
}

// ReadPooling reads pooling, projections and scores of a model that embeds or scores texts, from
// its architecture or from modules.json. An encoder without modules has mean pooling, the default
// of sentence-transformers.
func (h *File) ReadPooling(c *model.Config, readFile func(string) ([]byte, error)) error {
	if h.Causal != nil && !*h.Causal || string(h.UseBidirectional) == "true" {
		c.Bidirectional = true
	}
	if c.Bidirectional {
		c.Pooling = model.MeanPooling
	}
	for _, name := range h.Architecture {
		switch {
		case strings.HasSuffix(name, "ForSequenceClassification"):
			return h.scores(c)
		case strings.HasSuffix(name, "ForTokenClassification"), strings.HasSuffix(name, "ForQuestionAnswering"),
			strings.HasSuffix(name, "ForMultipleChoice"), strings.HasSuffix(name, "ForNextSentencePrediction"):
			return fmt.Errorf("architecture %.80q is %w: use a model that embeds, scores or generates texts", name,
				model.ErrUnsupported)
		}
	}
	var modules []module
	if err := readJSON(readFile, "modules.json", &modules); errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	c.Pooling = model.NoPooling
	for i, m := range modules {
		if err := h.module(c, m, readFile); err != nil {
			return fmt.Errorf("modules.json, module %d: %w", i, err)
		}
	}
	if c.Pooling == model.NoPooling {
		return errors.New("modules.json has no Pooling module")
	}
	return nil
}

// scores reads the head of a classifier, which has two scores by default.
func (h *File) scores(c *model.Config) error {
	n := cmp.Or(len(h.Labels), h.LabelsN, 2)
	c.Pooling, c.Scoring = model.LastPooling, model.Scoring{Count: n, Share: true}
	if c.Bidirectional {
		c.Pooling, c.Scoring = model.FirstPooling, model.Scoring{Count: n, Dense: true}
	}
	return nil
}

// module adds a stage after the layers.
func (h *File) module(c *model.Config, m module, readFile func(string) ([]byte, error)) error {
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
			return fmt.Errorf("activation_function %.80q is %w", d.Act, model.ErrUnsupported)
		case d.In != width || d.Out < 1:
			return fmt.Errorf("a Dense module from %d to %d numbers does not fit a vector of %d", d.In, d.Out, width)
		}
		c.Dense = append(c.Dense, d.Out)
		return nil
	default:
		return fmt.Errorf("module type %.80q is %w: it must be Transformer, Pooling, Dense, Normalize or Dropout",
			m.Type, model.ErrUnsupported)
	}
}

// poolBy reads the pooling mode: one of several boolean options or, since sentence-transformers 5,
// a name.
func (h *File) poolBy(c *model.Config, config string, readFile func(string) ([]byte, error)) error {
	var by map[string]json.RawMessage
	if err := readJSON(readFile, config, &by); err != nil {
		return err
	}
	names := map[string]model.Pooling{"cls_token": model.FirstPooling, "mean_tokens": model.MeanPooling,
		"lasttoken": model.LastPooling,
		"cls":       model.FirstPooling, "mean": model.MeanPooling}
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
			strings.Join(modes, " and "), model.ErrUnsupported)
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
