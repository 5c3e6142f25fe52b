package arch

import (
	"cmp"
	"fmt"

	"sandwich/runtime/gguf"
	"sandwich/runtime/model"
	"sandwich/runtime/model/hf"
	"sandwich/runtime/model/metadata"
	"sandwich/runtime/model/vocab"
)

func init() {
	Register(Architecture{Name: "qwen35", Decoder: qwen35, Vocabulary: qwen35Vocabulary,
		HF: []string{"qwen3_5_text"}, ReadHF: readDeltaHF,
		Read: func(m *metadata.Reader, c *model.Config) {
			m.Delta(c)
			m.Sections(c, true)
		},
		Check: func(c model.Config) error {
			if err := checkDelta(c); err != nil {
				return err
			}
			return checkDense(c)
		},
	})
	Register(Architecture{Name: "qwen35moe", Decoder: qwen35, Vocabulary: qwen35Vocabulary,
		HF: []string{"qwen3_5_moe_text"}, ReadHF: readDeltaExpertsHF,
		Read: func(m *metadata.Reader, c *model.Config) {
			readDeltaExperts(m, c)
			m.Sections(c, true)
		},
		Check: checkDeltaExperts})
	Register(Architecture{Name: "qwen3next", Decoder: qwen3next, Vocabulary: qwenVocabulary,
		HF: []string{"qwen3_next"}, ReadHF: readDeltaExpertsHF,
		Read: func(m *metadata.Reader, c *model.Config) {
			readDeltaExperts(m, c)
			c.Recurrence.Joined = m.Tensors("ssm_in.weight", 1)[0]
		},
		Check: checkDeltaExperts})
}

// readDeltaExperts reads the metadata of families with a delta rule and experts.
func readDeltaExperts(m *metadata.Reader, c *model.Config) {
	m.Delta(c)
	m.ExpertsOf(c)
	c.Experts.Shared = m.Size("expert_shared_feed_forward_length", 1<<20)
}

// checkDeltaExperts returns an error for sizes of the delta rule or of experts that are not
// possible.
func checkDeltaExperts(c model.Config) error {
	if err := checkDelta(c); err != nil {
		return err
	}
	return c.Experts.Check()
}

// checkDelta returns an error for sizes of the delta rule that are not possible.
func checkDelta(c model.Config) error {
	r := c.Recurrence
	switch {
	case r.KeyHeads < 1 || r.ValueHeads < 1 || r.KeyDim < 1 || r.ValueDim < 1:
		return fmt.Errorf("delta rule with %d value heads of size %d and %d key heads of size %d: "+
			"all must be positive", r.ValueHeads, r.ValueDim, r.KeyHeads, r.KeyDim)
	case r.ValueHeads%r.KeyHeads != 0:
		return fmt.Errorf("%d value heads cannot share %d key heads evenly", r.ValueHeads, r.KeyHeads)
	case r.Layers != nil && len(r.Layers) != c.Layers:
		return fmt.Errorf("the list of recurrent layers has %d entries for %d layers", len(r.Layers), c.Layers)
	case r.Layers == nil && r.Every < 1:
		return fmt.Errorf("the interval of attention layers is %d, not a positive number", r.Every)
	}
	for layer, kv := range c.KVHeadsOf {
		if kv == 0 && !r.Has(layer) {
			return fmt.Errorf("layer %d has attention but no KV heads", layer)
		}
	}
	return checkConv(c)
}

// qwen35 writes Qwen Team: Qwen3.5, 2026: layers with a delta rule, and gated attention in every
// fourth layer. qwen35moe has experts with a shared gated feed-forward. In a text the first three
// axes of the rotation are the position.
func qwen35(b *model.Builder) { deltaDecoder(b, model.DeltaLayout{}) }

// qwen3next writes Qwen Team: Qwen3-Next, 2025, whose files order rows by key head.
func qwen3next(b *model.Builder) { deltaDecoder(b, model.DeltaLayout{Together: true, Paired: true}) }

// deltaDecoder writes a decoder with delta rule layers in the layout that l describes.
func deltaDecoder(b *model.Builder, l model.DeltaLayout) {
	rope := b.Rope(model.Rope{Neox: true})
	b.Embed(1) // X [T, hidden]
	for i := range b.Layers() {
		b.Norm("attn_norm") // H [T, hidden]
		if b.Recurrence.Has(i) {
			b.DeltaNet(l) // Mix, Z, Alpha, Beta, Att, Y [T, hidden]
		} else {
			b.GatedAttention(rope) // Q, K, V, Z, Att, Y [T, hidden]
		}
		b.Norm("post_attention_norm") // H [T, hidden]
		if b.Experts.Count == 0 {
			b.FFN(model.SwiGLU) // Gate [T, ffn], Y [T, hidden]
			continue
		}
		b.Shared(model.SwiGLU) // Shared [T, shared ffn], Y [T, hidden]
		b.Mix(model.Mixture{Act: model.SwiGLU, Router: model.Router{Norm: true, Scale: 1}, Accumulate: true,
			Gate: "ffn_gate_inp_shexp"})
	}
	b.Norm("output_norm") // H [T, hidden]
	b.Head(1)             // Logits [wanted rows, vocab]
}

// qwen35Vocabulary writes the vocabulary of qwen2 with the pre-tokenizer of Qwen3.5.
func qwen35Vocabulary(w *gguf.Writer, tokens int) {
	vocab.WriteBPE(w, tokens, "qwen35", vocab.ChatML, []string{"<|endoftext|>", "<|im_start|>", "<|im_end|>"}, 0, 2,
		false)
}

// readDeltaHF reads the sizes of the delta rule, and which layers have it.
func readDeltaHF(h *hf.File, c *model.Config) error {
	var f struct {
		Conv       int   `json:"linear_conv_kernel_dim"`
		KeyDims    int   `json:"linear_key_head_dim"`
		ValueDims  int   `json:"linear_value_head_dim"`
		KeyHeads   int   `json:"linear_num_key_heads"`
		ValueHeads int   `json:"linear_num_value_heads"`
		FullEvery  int   `json:"full_attention_interval"`
		OutputGate *bool `json:"attn_output_gate"`
	}
	if err := h.Decode(&f); err != nil {
		return err
	}
	if err := h.Require(map[string]int{"head_dim": h.HeadDim, "num_key_value_heads": h.KVHeads}); err != nil {
		return err
	}
	if f.OutputGate != nil && !*f.OutputGate {
		return fmt.Errorf("attention without attn_output_gate is %w in %s", model.ErrUnsupported, h.ModelType)
	}
	c.Recurrence = model.Recurrence{Conv: f.Conv, KeyHeads: f.KeyHeads, ValueHeads: f.ValueHeads, KeyDim: f.KeyDims,
		ValueDim: f.ValueDims, Every: cmp.Or(f.FullEvery, 4)}
	layers, err := h.LayersOfKind("linear_attention", "full_attention")
	if err != nil {
		return err
	}
	if c.Recurrence.Every < 1 {
		return fmt.Errorf("full_attention_interval is %d, not a positive number", f.FullEvery)
	}
	if layers != nil && !isPeriodic(c.Recurrence, layers) {
		c.Recurrence.Layers = layers
	}
	if h.Rope == nil || h.Rope.Rotary == 0 {
		h.Rotary = cmp.Or(h.Rotary, 0.25)
	}
	h.ReadPartialRotary(c)
	return nil
}

// readDeltaExpertsHF reads delta rule and experts, whose weights must be normalized.
func readDeltaExpertsHF(h *hf.File, c *model.Config) error {
	if h.NormTopK != nil && !*h.NormTopK {
		return fmt.Errorf("norm_topk_prob false is %w in %s", model.ErrUnsupported, h.ModelType)
	}
	c.Experts = model.Experts{Count: h.Experts, Used: h.ExpertsUsed, FFN: h.ExpertFFN, Shared: h.SharedFFN}
	c.FFN = cmp.Or(c.FFN, h.ExpertFFN) // no layer has a dense feed-forward
	if err := h.Require(map[string]int{"shared_expert_intermediate_size": h.SharedFFN}); err != nil {
		return err
	}
	return readDeltaHF(h, c)
}

// isPeriodic reports whether a list of recurrent layers equals that of the period.
func isPeriodic(r model.Recurrence, layers []bool) bool {
	for i, has := range layers {
		if has != r.Has(i) {
			return false
		}
	}
	return true
}
