package model

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"sandwich/runtime/gguf"
)

// Metadata reads the keys of one architecture from a GGUF file, or from the values of a plan. It
// collects errors, so that a configuration is read to the end and all errors are reported.
type Metadata struct {
	source source
	arch   string
	from   string // fromFile or fromPlan
	errs   []error
}

// fail adds an error.
func (m *Metadata) fail(format string, args ...any) {
	m.errs = append(m.errs, fmt.Errorf(format, args...))
}

// missingKeyHint returns the advice for a source without a required key.
func (m *Metadata) missingKeyHint() string {
	if m.from == fromPlan {
		return "an earlier version wrote it, make a new one with `sandwich tune`"
	}
	return fmt.Sprintf("it is not a complete %s model", m.arch)
}

// Sources in error messages.
const (
	fromFile = "the file"
	fromPlan = "the plan"
)

// key returns the full key of a suffix.
func (m *Metadata) key(suffix string) string { return m.arch + "." + suffix }

// String returns a text by suffix of its key.
func (m *Metadata) String(suffix string) (string, bool) { return m.source.String(m.key(suffix)) }

// Uint returns a number that is not negative by suffix of its key.
func (m *Metadata) Uint(suffix string) (uint64, bool) { return m.source.Uint(m.key(suffix)) }

// Float returns a number by suffix of its key.
func (m *Metadata) Float(suffix string) (float64, bool) { return m.source.Float(m.key(suffix)) }

// Bool returns a truth value by suffix of its key.
func (m *Metadata) Bool(suffix string) (b, ok bool) { return m.source.Bool(m.key(suffix)) }

// Ints returns a list by suffix of its key.
func (m *Metadata) Ints(suffix string) ([]int32, bool) { return m.source.Ints(m.key(suffix)) }

// Tensors reports which of the first layers have a tensor blk.LAYER.name.
func (m *Metadata) Tensors(name string, layers int) []bool { return m.source.Tensors(name, layers) }

// Size reads a required count from 1 to most. It returns 1 after an error.
func (m *Metadata) Size(suffix string, most uint64) int {
	v, ok := m.Uint(suffix)
	if !ok {
		m.fail("%s has no %s: %s", m.from, m.key(suffix), m.missingKeyHint())
		return 1
	}
	if v == 0 || v > most {
		m.fail("%s is %d, outside 1..%d", m.key(suffix), v, most)
		return 1
	}
	return int(v)
}

// SizeOr reads a count from 1 to most, or returns the default if the key is missing.
func (m *Metadata) SizeOr(suffix string, most uint64, otherwise int) int {
	if _, ok := m.Uint(suffix); !ok {
		return otherwise
	}
	return m.Size(suffix, most)
}

// CountOr reads a count from 0 to most, 0 if the key is missing.
func (m *Metadata) CountOr(suffix string, most uint64) int {
	if v, ok := m.Uint(suffix); !ok || v == 0 {
		return 0
	}
	return m.Size(suffix, most)
}

// Has reports whether the source has an integer with a key.
func (m *Metadata) Has(suffix string) bool {
	_, ok := m.Uint(suffix)
	return ok
}

// hasFloat reports whether the source has a number with a key.
func (m *Metadata) hasFloat(suffix string) bool {
	_, ok := m.Float(suffix)
	return ok
}

// PositiveOr reads a positive number, or returns the default if the key is missing.
func (m *Metadata) PositiveOr(suffix string, otherwise float64) float64 {
	v, ok := m.Float(suffix)
	if !ok {
		return otherwise
	}
	if !(v > 0) || math.IsInf(v, 0) {
		m.fail("%s is %v, not a positive number", m.key(suffix), v)
		return otherwise
	}
	return v
}

// notBelow0 reads a number of zero or more, 0 if the key is missing.
func (m *Metadata) notBelow0(suffix string) float64 {
	if v, _ := m.Float(suffix); v == 0 {
		return 0
	}
	return m.PositiveOr(suffix, 0)
}

// ConfigOf reads the configuration of a model from GGUF metadata. The vocabulary is the number of
// rows of the embedding; a model without an output matrix is tied. It returns the first error.
func ConfigOf(f *gguf.File) (Config, error) {
	c, errs := ConfigErrors(f)
	if len(errs) > 0 {
		return Config{}, errs[0]
	}
	return c, nil
}

// ConfigErrors is ConfigOf that returns all errors.
func ConfigErrors(f *gguf.File) (Config, []error) {
	if err := checkPurpose(f); err != nil {
		return Config{}, []error{err}
	}
	a, err := archOf(f.Architecture())
	if err != nil {
		return Config{}, []error{err}
	}
	c, errs := readFile(f, a.Name, a.Read)
	if len(errs) > 0 {
		return c, errs
	}
	if err := checkConfig(c); err != nil {
		return c, []error{err}
	}
	return c, nil
}

// readFile reads the configuration of a file of an architecture. read reads the keys that only this
// family has, after those of all families; it may be nil. The sizes are not checked against each
// other.
func readFile(f *gguf.File, arch string, read func(*Metadata, *Config)) (Config, []error) {
	source := &fileSource{File: f, wanted: map[string]bool{}}
	m := &Metadata{source: source, arch: arch, from: fromFile}
	c := Config{Arch: arch}
	c.Name, _ = f.String("general.name")
	m.dims(&c)
	m.rope(&c)
	if read != nil {
		read(m, &c)
	}
	c.fused(f)
	if err := c.pooled(f); err != nil {
		m.fail("%w", err)
	}
	m.errs = append(m.errs, source.unread()...)
	embed, ok := f.Tensor(embedTensor)
	if !ok || len(embed.Dims) != 2 {
		m.fail("the file has no matrix %s: it is not a complete %s model", embedTensor, c.Arch)
	}
	if len(m.errs) > 0 {
		return c, m.errs
	}
	c.Vocab = embed.Dims[1]
	if n := f.Count("tokenizer.ggml.tokens"); n > c.Vocab {
		return c, []error{fmt.Errorf("the vocabulary has %d tokens, but %s has %d rows: the file is damaged", n,
			embedTensor, c.Vocab)}
	}
	_, untied := f.Tensor(headTensor)
	c.Tied = !untied
	return c, nil
}

// fused sets whether q, k and v are one tensor, and gate and up of the experts; converters may do
// so for any family. attn_output tells attention layers from layers with a delta rule, which also
// have attn_qkv.
func (c *Config) fused(f *gguf.File) {
	for i := range c.Layers {
		has := func(name string) bool {
			_, ok := f.Tensor(fmt.Sprintf("blk.%d.%s.weight", i, name))
			return ok
		}
		c.Fused = c.Fused || has("attn_qkv") && has("attn_output")
		c.FusedExperts = c.FusedExperts || c.Experts.Count > 0 && has("ffn_gate_up_exps")
	}
}

// checkPurpose returns an error for files that are not a complete model: projectors and adapters.
func checkPurpose(f *gguf.File) error {
	kind, _ := f.String("general.type")
	adapter, _ := f.String("adapter.type")
	switch {
	case kind == "mmproj" || f.Architecture() == "clip":
		return fmt.Errorf("this is the projector of a multimodal model (mmproj), which is %w: use the file of the "+
			"model, without images and sounds", ErrUnsupported)
	case kind == "adapter" || adapter != "":
		return fmt.Errorf("this is an adapter (%s), which is %w: merge it into its base model %s",
			cmp.Or(adapter, "LoRA"), ErrUnsupported, f.Architecture())
	}
	return nil
}

// dims reads the sizes that all families have.
func (m *Metadata) dims(c *Config) {
	c.Hidden = m.Size("embedding_length", 1<<17)
	c.Layers = m.Size("block_count", 1<<10)
	c.Heads = m.Size("attention.head_count", 1<<12)
	c.HeadDim = m.SizeOr("attention.key_length", 1<<12, max(1, c.Hidden/c.Heads))
	c.Context = m.Size("context_length", 1<<26)
	if v := m.SizeOr("attention.value_length", 1<<12, c.HeadDim); v != c.HeadDim && !m.Has("attention.kv_lora_rank") {
		m.fail("value heads of size %d with key heads of size %d are %w", v, c.HeadDim, ErrUnsupported)
	}
	c.KVHeads, c.FFN = c.Heads, 1
	if m.Has("attention.head_count_kv") {
		c.KVHeads = m.Size("attention.head_count_kv", 1<<12)
	}
	if _, list := m.Ints("feed_forward_length"); !list {
		ffn := "feed_forward_length"
		if !m.Has(ffn) && m.Has("expert_"+ffn) { // all layers have experts
			ffn = "expert_" + ffn
		}
		c.FFN = m.Size(ffn, 1<<20)
	}
	m.layers(c)
	eps := rmsEps
	if !m.hasFloat(eps) && m.hasFloat(layerEps) {
		eps = layerEps
	}
	if c.Eps = m.PositiveOr(eps, 0); !(c.Eps > 0 && c.Eps < 1) {
		m.fail("%s is missing or outside (0, 1)", m.key(eps))
	}
}

// layers reads the sizes that files may give per layer. The common size is their maximum.
func (m *Metadata) layers(c *Config) {
	m.eachLayer("attention.head_count_kv", 1<<12, &c.KVHeads, &c.KVHeadsOf, c.Layers)
	m.eachLayer("feed_forward_length", 1<<20, &c.FFN, &c.FFNOf, c.Layers)
}

// eachLayer reads a list with a size per layer, if the source has one.
func (m *Metadata) eachLayer(suffix string, most int32, all *int, of *[]int, layers int) {
	list, ok := m.Ints(suffix)
	if !ok {
		return
	}
	if len(list) != layers {
		m.fail("%s has %d entries for %d layers", m.key(suffix), len(list), layers)
		return
	}
	sizes, same := make([]int, layers), true
	for i, v := range list {
		if v < 0 || v > most {
			m.fail("%s of layer %d is %d, outside 0..%d", m.key(suffix), i, v, most)
			return
		}
		sizes[i] = int(v)
		same = same && v == list[0]
	}
	*all = max(1, slices.Max(sizes))
	if !same {
		*of = sizes
	}
}

// rope reads base and scaling of the rotation.
func (m *Metadata) rope(c *Config) {
	c.RopeBase = m.PositiveOr("rope.freq_base", 10000)
	if dim := m.SizeOr("rope.dimension_count", 1<<12, c.HeadDim); dim != c.HeadDim {
		c.RopeDim = dim
	}
	if gain := m.PositiveOr("rope.scaling.attn_factor", 1); gain != 1 {
		c.RopeGain = gain
	}
	factor := m.scaling()
	original := m.SizeOr("rope.scaling.original_context_length", 1<<26, c.Context)
	switch rule, _ := m.String("rope.scaling.type"); rule {
	case "none":
	case "yarn":
		c.Yarn = &Yarn{Factor: cmp.Or(factor, 1), Fast: 32, Slow: 1, Original: original}
	case "longrope":
		c.Original = original
		fallthrough
	case "":
		if factor > 0 && factor != 1 {
			c.RopeScale = 1 / factor
		}
	case "linear":
		c.RopeScale = 1 / factor
		if factor == 0 {
			m.fail("%s has no %s, which linear scaling needs", m.from, m.key("rope.scaling.factor"))
		}
	case "llama3":
		c.Llama3 = &Llama3Rope{Factor: m.PositiveOr("rope.scaling.factor", 8),
			Low: m.PositiveOr("rope.scaling.low_freq_factor", 1), High: m.PositiveOr("rope.scaling.high_freq_factor",
				4),
			Original: m.SizeOr("rope.scaling.original_context_length", 1<<26, 8192)}
	default:
		c.RopeRule = rule
	}
}

// scaling reads the scaling factor of the rotation, under its name or that of converters in 2023,
// which had only linear scaling. It returns 0 if there is none.
func (m *Metadata) scaling() float64 {
	for _, suffix := range []string{"rope.scaling.factor", "rope.scale_linear"} {
		if f, ok := m.Float(suffix); ok && f != 0 {
			return m.PositiveOr(suffix, 0)
		}
	}
	return 0
}

// Experts reads the sizes of a mixture of experts. Their width defaults to that of the
// feed-forward.
func (m *Metadata) Experts(c *Config) {
	c.Experts = Experts{Count: m.Size("expert_count", maxExperts), Used: m.Size("expert_used_count", maxExperts),
		FFN: m.SizeOr("expert_feed_forward_length", 1<<20, c.FFN)}
}

// ExpertsOf reads experts whose width defaults to that of the feed-forward divided by the experts
// per token (llama.cpp's rule for the Qwen families).
func (m *Metadata) ExpertsOf(c *Config) {
	m.Experts(c)
	if !m.Has("expert_feed_forward_length") {
		c.Experts.FFN = max(1, c.FFN/c.Experts.Used)
	}
}

// near reads base and scale of the rotation in windowed layers. With the scaling type "none", a
// scaling factor still applies to these layers, as in llama.cpp.
func (m *Metadata) near(c *Config) {
	c.Windows.Base = m.PositiveOr("rope.freq_base_swa", 0)
	rule, _ := m.String("rope.scaling.type")
	if factor := m.scaling(); rule == "none" && factor > 0 {
		c.Windows.Scale = 1 / factor
	}
}

// Windows reads the size of windows and which layers have them; the default is all but the last of
// each period.
func (m *Metadata) Windows(c *Config, period int) {
	c.Windows.Size = m.Size("attention.sliding_window", 1<<26)
	c.Windows.Base = m.PositiveOr("rope.freq_base_swa", 0)
	const pattern = "attention.sliding_window_pattern"
	if list, ok := m.Ints(pattern); ok {
		for _, has := range list {
			c.Windows.Layers = append(c.Windows.Layers, has != 0)
		}
		return
	}
	c.Windows.Period = m.SizeOr(pattern, 1<<10, period)
}

// caps reads the soft caps of scores and logits that the source has.
func (m *Metadata) caps(c *Config) {
	c.Scales.AttnCap = m.PositiveOr("attn_logit_softcapping", c.Scales.AttnCap)
	c.Scales.LogitCap = m.PositiveOr("final_logit_softcapping", c.Scales.LogitCap)
}

// Scales reads the scale factors that the source has.
func (m *Metadata) Scales(c *Config) {
	for key, scale := range map[string]*float64{"embedding_scale": &c.Scales.Embed, "logit_scale": &c.Scales.Logits,
		"residual_scale": &c.Scales.Residual, "attention.scale": &c.Scales.Attn} {
		if m.hasFloat(key) {
			*scale = m.PositiveOr(key, 1)
		}
	}
}
