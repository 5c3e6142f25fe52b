package model

import (
	"cmp"

	"sandwich/runtime/gguf"
)

func init() {
	Register(Architecture{Name: "phi3", Decoder: phi3, Vocabulary: phi3Vocabulary,
		HF: []string{"phi3"}, Knows: []string{"windows", "longrope"},
		ReadHF: func(h *HF, c *Config) error {
			var f struct {
				Original int `json:"original_max_position_embeddings"`
			}
			if err := h.decode(&f); err != nil {
				return err
			}
			h.partialRotary(c)
			c.Original = cmp.Or(f.Original, c.Context)
			return nil
		},
		Read: func(m *Metadata, c *Config) {
			c.Original = m.SizeOr("rope.scaling.original_context_length", 1<<26, c.Context) // for all scaling types
		},
	})
}

// phi3 writes Abdin et al., Phi-3 Technical Report, 2024: llama with fused matrices and a rotation
// of a part of each head, whose factors depend on the maximum context.
func phi3(b *Builder) {
	rope := b.Rope(Rope{Neox: true})
	b.Embed(1) // X [T, hidden]
	for range b.Layers() {
		b.Norm("attn_norm")                                           // H [T, hidden]
		b.project(projection{In: BufH, Bias: IfPresent, Fused: true}) // Q [T, heads*headDim], K and V
		b.Rotate(Rotation{Rope: rope})
		b.Attend(Attn{Scale: b.HeadScale()})             // Att [T, heads*headDim]
		b.AttnOut()                                      // Y [T, hidden]
		b.Norm("ffn_norm")                               // H [T, hidden]
		b.Feed(Feed{In: BufH, Act: SwiGLU, Fused: true}) // Gate [T, ffn], Y [T, hidden]
	}
	b.Norm("output_norm") // H [T, hidden]
	b.Head(1)             // Logits [wanted rows, vocab]
}

// phi3Vocabulary writes llama's vocabulary with the special tokens of Phi-3.
func phi3Vocabulary(w *gguf.Writer, tokens int) {
	spm{special: []string{"<unk>", "<s>", "</s>", "<|endoftext|>", "<|assistant|>", "<|system|>", "<|end|>",
		"<|user|>"}, unknown: 0, bos: 1, eos: 3, template: chatPhi3}.write(w, tokens)
}
