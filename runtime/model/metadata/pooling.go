package metadata

import (
	"fmt"
	"strconv"

	"sandwich/runtime/gguf"
	"sandwich/runtime/model"
)

// poolRank is llama.cpp's pooling type of models that score. Smaller types are those of Pooling.
const poolRank = 4

// readPooling reads pooling, projections and scores from a file, and the token types of encoders.
func readPooling(c *model.Config, f *gguf.File) error {
	if causal, ok := f.Bool(c.Arch + ".attention.causal"); ok {
		c.Bidirectional = !causal
	}
	if c.Bidirectional {
		c.Types = rowsOf(f, "token_types.weight")
	}
	kind, _ := f.Uint(c.Arch + ".pooling_type")
	switch {
	case kind == 0:
		return nil
	case kind == poolRank:
		return readScoring(c, f)
	case kind > poolRank:
		return fmt.Errorf("%s.pooling_type %d is %w: it must be 0 to %d", c.Arch, kind, model.ErrUnsupported, poolRank)
	}
	c.Pooling = model.Pooling(kind)
	for _, name := range model.DenseNames {
		if n := rowsOf(f, name+".weight"); n > 0 {
			c.Dense = append(c.Dense, n)
		}
	}
	return nil
}

// rowsOf returns the number of rows of a tensor, 0 if the file does not have it.
func rowsOf(f *gguf.File, tensor string) int {
	t, ok := f.Tensor(tensor)
	switch {
	case !ok:
		return 0
	case len(t.Dims) > 1:
		return t.Dims[1]
	}
	return 1
}

// readScoring reads the head of a model that scores. The head of an encoder reads the first row.
// The head of a decoder reads the last row, and its scores are normalized by softmax, as llama.cpp
// does for the Qwen3 family.
func readScoring(c *model.Config, f *gguf.File) error {
	c.Pooling = model.LastPooling
	if c.Bidirectional {
		c.Pooling = model.FirstPooling
	}
	_, c.Scoring.Dense = f.Tensor("cls.weight")
	c.Scoring.Count, c.Scoring.Share = rowsOf(f, "cls.output.weight"), !c.Bidirectional
	if c.Scoring.Count == 0 {
		return fmt.Errorf("the model scores texts (pooling type %d), but the file has no tensor cls.output.weight: "+
			"it is damaged, or of a kind that is %w", poolRank, model.ErrUnsupported)
	}
	return nil
}

// WritePooling writes the metadata of pooled models.
func WritePooling(w *gguf.Writer, c model.Config) {
	key := func(s string) string { return c.Arch + "." + s }
	if c.Pooling == model.NoPooling {
		return
	}
	kind := uint32(c.Pooling)
	if c.Scoring.Count > 0 {
		kind = poolRank
	}
	if n := c.Scoring.Count; n > 1 {
		labels := make([]string, n)
		for i := range labels {
			labels[i] = strconv.Itoa(i)
		}
		w.SetStrings(key("classifier.output_labels"), labels)
	}
	w.SetUint32(key("pooling_type"), kind)
	if c.Bidirectional {
		w.SetBool(key("attention.causal"), false)
	}
	in := c.Hidden
	for i, out := range c.Dense {
		w.SetUint32(key(model.DenseNames[i]+"_feat_in"), uint32(in))
		w.SetUint32(key(model.DenseNames[i]+"_feat_out"), uint32(out))
		in = out
	}
}
