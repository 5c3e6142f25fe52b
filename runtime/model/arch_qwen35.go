package model

import (
	"fmt"

	"sandwich/runtime/gguf"
)

func init() {
	Register(Architecture{Name: "qwen35", Decoder: qwen35, Vocabulary: qwen35Vocabulary,
		HF: []string{"qwen3_5_text"}, ReadHF: (*HF).delta,
		Read: func(m *Metadata, c *Config) {
			m.Delta(c)
			m.sections(c, true)
		},
		Check: func(c Config) error {
			if err := c.checkDelta(); err != nil {
				return err
			}
			return checkDense(c)
		},
	})
	Register(Architecture{Name: "qwen35moe", Decoder: qwen35, Vocabulary: qwen35Vocabulary,
		HF: []string{"qwen3_5_moe_text"}, ReadHF: (*HF).deltaExperts,
		Read: func(m *Metadata, c *Config) {
			readDeltaExperts(m, c)
			m.sections(c, true)
		},
		Check: checkDeltaExperts})
	Register(Architecture{Name: "qwen3next", Decoder: qwen3next, Vocabulary: qwenVocabulary,
		HF: []string{"qwen3_next"}, ReadHF: (*HF).deltaExperts,
		Read: func(m *Metadata, c *Config) {
			readDeltaExperts(m, c)
			c.Recurrence.Joined = m.source.Tensors("ssm_in.weight", 1)[0]
		},
		Check: checkDeltaExperts})
}

// readDeltaExperts reads the metadata of families with a delta rule and experts.
func readDeltaExperts(m *Metadata, c *Config) {
	m.Delta(c)
	m.ExpertsOf(c)
	c.Experts.Shared = m.Size("expert_shared_feed_forward_length", 1<<20)
}

// checkDeltaExperts returns an error for sizes of the delta rule or of experts that are not
// possible.
func checkDeltaExperts(c Config) error {
	if err := c.checkDelta(); err != nil {
		return err
	}
	return c.Experts.check()
}

// checkDelta returns an error for sizes of the delta rule that are not possible.
func (c Config) checkDelta() error {
	r := c.Recurrence
	switch {
	case r.KeyHeads < 1 || r.ValueHeads < 1 || r.KeyDim < 1 || r.ValueDim < 1:
		return fmt.Errorf("delta rule with %d value heads of size %d and %d key heads of size %d: "+
			"all must be positive", r.ValueHeads, r.ValueDim, r.KeyHeads, r.KeyDim)
	case r.ValueHeads%r.KeyHeads != 0:
		return fmt.Errorf("%d value heads cannot share %d key heads evenly", r.ValueHeads, r.KeyHeads)
	case r.Conv < 2:
		return fmt.Errorf("a convolution of %d positions is too short, it needs 2: the file is damaged", r.Conv)
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
	return nil
}

// qwen35 writes Qwen Team: Qwen3.5, 2026: layers with a delta rule, and gated attention in every
// fourth layer. qwen35moe has experts with a shared gated feed-forward. In a text the first three
// axes of the rotation are the position.
func qwen35(b *Builder) { deltaDecoder(b, deltaNet{}) }

// qwen3next writes Qwen Team: Qwen3-Next, 2025, whose files order rows by key head.
func qwen3next(b *Builder) { deltaDecoder(b, deltaNet{Together: true, Paired: true}) }

// deltaDecoder writes a decoder with delta rule layers in the layout that l describes.
func deltaDecoder(b *Builder, l deltaNet) {
	rope := b.Rope(Rope{Neox: true})
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
			b.FFN(SwiGLU) // Gate [T, ffn], Y [T, hidden]
			continue
		}
		b.Shared(SwiGLU) // Shared [T, shared ffn], Y [T, hidden]
		b.Mix(Mixture{Act: SwiGLU, Router: Router{Norm: true, Scale: 1}, Accumulate: true, Gate: "ffn_gate_inp_shexp"})
	}
	b.Norm("output_norm") // H [T, hidden]
	b.Head(1)             // Logits [wanted rows, vocab]
}

// qwen35Vocabulary writes the vocabulary of qwen2 with the pre-tokenizer of Qwen3.5.
func qwen35Vocabulary(w *gguf.Writer, tokens int) {
	writeBPE(w, tokens, "qwen35", chatML, []string{"<|endoftext|>", "<|im_start|>", "<|im_end|>"}, 0, 2, false)
}
