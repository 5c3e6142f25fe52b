package model

import "fmt"

func init() {
	Register(Architecture{Name: "qwen3moe", HF: []string{"qwen3_moe"}, Decoder: qwen3moe, Vocabulary: qwenVocabulary,
		Read: func(m *Metadata, c *Config) { m.ExpertsOf(c) },
		ReadHF: func(h *HF, c *Config) error {
			c.Experts = Experts{Count: h.Experts, Used: h.ExpertsUsed, FFN: h.ExpertFFN}
			if h.NormTopK != nil && !*h.NormTopK {
				return fmt.Errorf("norm_topk_prob false is %w in qwen3_moe", ErrUnsupported)
			}
			return nil
		},
		Check: checkExperts,
	})
}

// qwen3moe writes qwen3 with a mixture of experts instead of each feed-forward.
func qwen3moe(b *Builder) {
	rope := b.Rope(Rope{Neox: true})
	b.Embed(1) // X [T, hidden]
	for range b.Layers() {
		b.Norm("attn_norm") // H [T, hidden]
		b.QKV(IfPresent)    // Q [T, heads*headDim], K and V [T, kvHeads*headDim]
		b.Rotate(Rotation{Rope: rope, QNorm: "attn_q_norm", KNorm: "attn_k_norm"})
		b.Attend(Attn{Scale: b.HeadScale()})                              // Att [T, heads*headDim]
		b.AttnOut()                                                       // Y [T, hidden]
		b.Norm("ffn_norm")                                                // H [T, hidden]
		b.Mix(Mixture{Act: SwiGLU, Router: Router{Norm: true, Scale: 1}}) // Y [T, hidden]
	}
	b.Norm("output_norm") // H [T, hidden]
	b.Head(1)             // Logits [wanted rows, vocab]
}
