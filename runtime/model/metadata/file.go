package metadata

import (
	"cmp"
	"fmt"

	"sandwich/runtime/gguf"
	"sandwich/runtime/model"
)

// ReadFile reads the configuration of a file of an architecture. read reads the keys that only this
// family has, after those of all families; it may be nil. The sizes are not checked against each
// other.
func ReadFile(f *gguf.File, arch string, read func(*Reader, *model.Config)) (model.Config, []error) {
	source := &fileSource{File: f, wanted: map[string]bool{}}
	m := &Reader{source: source, arch: arch, from: fromFile}
	c := model.Config{Arch: arch}
	c.Name, _ = f.String("general.name")
	m.dims(&c)
	m.rope(&c)
	if read != nil {
		read(m, &c)
	}
	readFused(&c, f)
	if err := readPooling(&c, f); err != nil {
		m.Fail("%w", err)
	}
	m.errs = append(m.errs, source.unread()...)
	embed, ok := f.Tensor(model.EmbedTensor)
	if !ok || len(embed.Dims) != 2 {
		m.Fail("the file has no matrix %s: it is not a complete %s model; convert or download it again",
			model.EmbedTensor, c.Arch)
	}
	if len(m.errs) > 0 {
		return c, m.errs
	}
	c.Vocab = embed.Dims[1]
	if n := f.Count("tokenizer.ggml.tokens"); n > c.Vocab {
		return c, []error{fmt.Errorf("the vocabulary has %d tokens, but %s has %d rows: the file is damaged", n,
			model.EmbedTensor, c.Vocab)}
	}
	_, untied := f.Tensor(model.HeadTensor)
	c.Tied = !untied
	return c, nil
}

// readFused sets whether q, k and v are one tensor, and gate and up of the experts; converters may
// do so for any family. attn_output tells attention layers from layers with a delta rule, which
// also have attn_qkv.
func readFused(c *model.Config, f *gguf.File) {
	for i := range c.Layers {
		has := func(name string) bool {
			_, ok := f.Tensor(fmt.Sprintf("blk.%d.%s.weight", i, name))
			return ok
		}
		c.Fused = c.Fused || has("attn_qkv") && has("attn_output")
		c.FusedExperts = c.FusedExperts || c.Experts.Count > 0 && has("ffn_gate_up_exps")
	}
}

// CheckPurpose returns an error for files that are not a complete model: projectors and adapters.
func CheckPurpose(f *gguf.File) error {
	kind, _ := f.String("general.type")
	adapter, _ := f.String("adapter.type")
	switch {
	case kind == "mmproj" || f.Architecture() == "clip":
		return fmt.Errorf("this is the projector of a multimodal model (mmproj), which is %w: use the file of the "+
			"model, without images and sounds", model.ErrUnsupported)
	case kind == "adapter" || adapter != "":
		return fmt.Errorf("this is an adapter (%s), which is %w: merge it into its base model %s",
			cmp.Or(adapter, "LoRA"), model.ErrUnsupported, f.Architecture())
	}
	return nil
}
