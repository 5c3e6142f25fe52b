package model

import "sandwich/runtime/gguf"

func init() {
	Register(Architecture{Name: "glm4", Decoder: glm4, Vocabulary: glmVocabulary, HF: []string{"glm4"},
		Read: func(m *Metadata, c *Config) {
			m.skipPredictionLayers(c)
			list, _ := m.Ints("rope.dimension_sections")
			c.Axes = len(list) > 1 && list[0] > 0 && list[1] > 0
			if c.Axes {
				m.sections(c, false)
			}
		},
		Knows: []string{"biases"}, ReadHF: func(h *HF, c *Config) error { h.partialRotary(c); return nil }})
}

// glm4 writes the GLM-4 of 2025 (Zeng et al.: ChatGLM, 2024) with norms after the blocks; half of
// each head rotates.
func glm4(b *Builder) {
	rope := b.Rope(Rope{Neox: b.Axes})
	b.Embed(1) // X [T, hidden]
	for range b.Layers() {
		b.Norm("attn_norm") // H [T, hidden]
		b.QKV(IfPresent)    // Q [T, heads*headDim], K and V [T, kvHeads*headDim]
		b.Rotate(Rotation{Rope: rope})
		b.Attend(Attn{Scale: b.HeadScale()}) // Att [T, heads*headDim]
		b.AttnOut()                          // Y [T, hidden]
		b.Residual(Residual{Scale: 1, Post: "post_attention_norm"})
		b.Norm("ffn_norm")                               // H [T, hidden]
		b.Feed(Feed{In: BufH, Act: SwiGLU, Fused: true}) // Gate [T, ffn], Y [T, hidden]
		b.Residual(Residual{Scale: 1, Post: "post_ffw_norm"})
	}
	b.Norm("output_norm") // H [T, hidden]
	b.Head(1)             // Logits [wanted rows, vocab]
}

// glmVocabulary writes a byte-level BPE vocabulary with GLM's special tokens.
func glmVocabulary(w *gguf.Writer, tokens int) {
	special := []string{"<|endoftext|>", "[gMASK]", "<sop>", "<|system|>", "<|user|>", "<|assistant|>",
		"<|observation|>"}
	writeBPE(w, tokens, "glm4", chatGLM, special, 0, 0, false)
}
