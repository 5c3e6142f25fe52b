package arch

import (
	"cmp"

	"sandwich/runtime/gguf"
	"sandwich/runtime/model"
	"sandwich/runtime/model/hf"
	"sandwich/runtime/model/metadata"
	"sandwich/runtime/model/vocab"
)

func init() {
	Register(Architecture{Name: "phi3", Decoder: phi3, Vocabulary: phi3Vocabulary,
		HF: []string{"phi3"}, Knows: []string{"windows", "longrope"},
		ReadHF: func(h *hf.File, c *model.Config) error {
			var f struct {
				Original int `json:"original_max_position_embeddings"`
			}
			if err := h.Decode(&f); err != nil {
				return err
			}
			h.ReadPartialRotary(c)
			c.Original = cmp.Or(f.Original, c.Context)
			return nil
		},
		Read: func(m *metadata.Reader, c *model.Config) {
			c.Original = m.SizeOr("rope.scaling.original_context_length", 1<<26, c.Context) // for all scaling types
		},
	})
}

// phi3 writes Abdin et al., Phi-3 Technical Report, 2024: llama with fused matrices and a rotation
// of a part of each head, whose factors depend on the maximum context.
func phi3(b *model.Builder) {
	rope := b.Rope(model.Rope{Neox: true})
	b.Embed(1) // X [T, hidden]
	for range b.Layers() {
		b.Norm("attn_norm")                                                             // H [T, hidden]
		b.Project(model.Projection{In: model.BufH, Bias: model.IfPresent, Fused: true}) // Q [T, heads*headDim], K and V
		b.Rotate(model.Rotation{Rope: rope})
		b.Attend(model.Attn{Scale: b.HeadScale()})                         // Att [T, heads*headDim]
		b.AttnOut()                                                        // Y [T, hidden]
		b.Norm("ffn_norm")                                                 // H [T, hidden]
		b.Feed(model.Feed{In: model.BufH, Act: model.SwiGLU, Fused: true}) // Gate [T, ffn], Y [T, hidden]
	}
	b.Norm("output_norm") // H [T, hidden]
	b.Head(1)             // Logits [wanted rows, vocab]
}

// phi3Vocabulary writes llama's vocabulary with the special tokens of Phi-3.
func phi3Vocabulary(w *gguf.Writer, tokens int) {
	vocab.SPM{Special: []string{"<unk>", "<s>", "</s>", "<|endoftext|>", "<|assistant|>", "<|system|>", "<|end|>",
		"<|user|>"}, Unknown: 0, BOS: 1, EOS: 3, Template: chatPhi3}.Write(w, tokens)
}

// chatPhi3 is a chat template similar to that of the family, for synthetic vocabularies.
const chatPhi3 = `{% for message in messages %}<|{{ message['role'] }}|>
{{ message['content'] }}<|end|>
{% endfor %}{% if add_generation_prompt %}<|assistant|>
{% endif %}`
