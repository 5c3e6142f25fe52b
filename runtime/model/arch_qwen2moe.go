package model

import "fmt"

func init() {
	Register(Architecture{Name: "qwen2moe", Decoder: qwen2moe, Vocabulary: qwenVocabulary, HF: []string{"qwen2_moe"},
		ReadHF: func(h *HF, c *Config) error {
			c.Experts = Experts{Count: h.Experts, Used: h.ExpertsUsed, FFN: h.ExpertFFN, Shared: h.SharedFFN}
			if h.NormTopK != nil && *h.NormTopK {
				return fmt.Errorf("norm_topk_prob true is %w in qwen2_moe", ErrUnsupported)
			}
			return nil
		},
		Read: func(m *Metadata, c *Config) {
			m.ExpertsOf(c)
			c.Experts.Shared = m.SizeOr("expert_shared_feed_forward_length", 1<<20, c.FFN)
		},
		Check: checkExperts,
	})
}

// qwen2moe writes qwen2 with experts, whose weights are not normalized, and a shared gated
// feed-forward (Yang et al., 2024, section 2.2.2).
func qwen2moe(b *Builder) {
	rope := b.Rope(Rope{Neox: true})
	b.Embed(1) // X [T, hidden]
	for range b.Layers() {
		b.Norm("attn_norm") // H [T, hidden]
		b.QKV(Usually)      // Q [T, heads*headDim], K and V [T, kvHeads*headDim]
		b.Rotate(Rotation{Rope: rope})
		b.Attend(Attn{Scale: b.HeadScale()}) // Att [T, heads*headDim]
		b.AttnOut()                          // Y [T, hidden]
		b.Norm("ffn_norm")                   // H [T, hidden]
		b.Shared(SwiGLU)                     // Shared [T, shared ffn], Y [T, hidden]
		b.Mix(Mixture{Act: SwiGLU, Router: Router{Scale: 1}, Accumulate: true, Gate: "ffn_gate_inp_shexp"})
	}
	b.Norm("output_norm") // H [T, hidden]
	b.Head(1)             // Logits [wanted rows, vocab]
}
