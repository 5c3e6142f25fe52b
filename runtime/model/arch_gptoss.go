package model

import "sandwich/runtime/gguf"

func init() {
	Register(Architecture{Name: "gpt-oss", Decoder: gptOSS, Vocabulary: gptOSSVocabulary,
		HF: []string{"gpt_oss"}, Knows: []string{"windows", "biases", "yarn"},
		ReadHF: func(h *HF, c *Config) error {
			c.Windows = h.windows(2)
			c.Experts = Experts{Count: h.LocalExperts, Used: h.ExpertsUsed, FFN: c.FFN}
			return nil
		},
		Read: func(m *Metadata, c *Config) {
			m.Windows(c, 2)
			m.near(c)
			m.Experts(c)
		},
		Check: func(c Config) error {
			if err := c.Windows.check(c.Arch); err != nil {
				return err
			}
			return c.Experts.check()
		},
	})
}

// gptOSS writes OpenAI: gpt-oss-120b and gpt-oss-20b Model Card, 2025: experts with clamped SwiGLU,
// windows in every second layer, an attention sink per head, and biases in all products.
func gptOSS(b *Builder) {
	far := b.Rope(Rope{Neox: true})
	near := b.Near(far)
	b.Embed(1) // X [T, hidden]
	for i := range b.Layers() {
		rope := far
		if b.Windows.Has(i) {
			rope = near
		}
		b.Norm("attn_norm") // H [T, hidden]
		b.QKV(Usually)      // Q [T, heads*headDim], K and V [T, kvHeads*headDim]
		b.Rotate(Rotation{Rope: rope})
		b.AttendSinks(Attn{Scale: b.HeadScale(), Window: b.Windows.Of(i)}, "attn_sinks")
		b.AttnOutBias(Always)                                                                  // Y [T, hidden]
		b.Norm("post_attention_norm")                                                          // H [T, hidden]
		b.Mix(Mixture{Act: ClampedSwiGLU, Router: Router{Norm: true, Scale: 1}, Bias: Always}) // Y [T, hidden]
	}
	b.Norm("output_norm") // H [T, hidden]
	b.Head(1)             // Logits [wanted rows, vocab]
}

// gptOSSVocabulary writes a byte-level BPE vocabulary with the special tokens of the harmony
// format.
func gptOSSVocabulary(w *gguf.Writer, tokens int) {
	special := []string{"<|startoftext|>", "<|endoftext|>", "<|return|>", "<|constrain|>", "<|channel|>", "<|start|>",
		"<|end|>", "<|message|>", "<|call|>"}
	writeBPE(w, tokens, "gpt-4o", chatHarmony, special, 0, 2, false)
}
