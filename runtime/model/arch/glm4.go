package arch

import (
	"sandwich/runtime/gguf"
	"sandwich/runtime/model"
	"sandwich/runtime/model/hf"
	"sandwich/runtime/model/metadata"
	"sandwich/runtime/model/vocab"
)

func init() {
	Register(Architecture{Name: "glm4", Decoder: glm4, Vocabulary: glmVocabulary, HF: []string{"glm4"},
		Read: func(m *metadata.Reader, c *model.Config) {
			m.SkipPredictionLayers(c)
			list, _ := m.Ints("rope.dimension_sections")
			c.Axes = len(list) > 1 && list[0] > 0 && list[1] > 0
			if c.Axes {
				m.Sections(c, false)
			}
		},
		Knows:  []string{"biases"},
		ReadHF: func(h *hf.File, c *model.Config) error { h.ReadPartialRotary(c); return nil }})
}

// glm4 writes the GLM-4 of 2025 (Zeng et al.: ChatGLM, 2024) with norms after the blocks; half of
// each head rotates.
func glm4(b *model.Builder) {
	rope := b.Rope(model.Rope{Neox: b.Axes})
	b.Embed(1) // X [T, hidden]
	for range b.Layers() {
		b.Norm("attn_norm")    // H [T, hidden]
		b.QKV(model.IfPresent) // Q [T, heads*headDim], K and V [T, kvHeads*headDim]
		b.Rotate(model.Rotation{Rope: rope})
		b.Attend(model.Attn{Scale: b.HeadScale()}) // Att [T, heads*headDim]
		b.AttnOut()                                // Y [T, hidden]
		b.Residual(model.Residual{Scale: 1, Post: "post_attention_norm"})
		b.Norm("ffn_norm")                                                 // H [T, hidden]
		b.Feed(model.Feed{In: model.BufH, Act: model.SwiGLU, Fused: true}) // Gate [T, ffn], Y [T, hidden]
		b.Residual(model.Residual{Scale: 1, Post: "post_ffw_norm"})
	}
	b.Norm("output_norm") // H [T, hidden]
	b.Head(1)             // Logits [wanted rows, vocab]
}

// glmVocabulary writes a byte-level BPE vocabulary with GLM's special tokens.
func glmVocabulary(w *gguf.Writer, tokens int) {
	special := []string{"<|endoftext|>", "[gMASK]", "<sop>", "<|system|>", "<|user|>", "<|assistant|>",
		"<|observation|>"}
	vocab.WriteBPE(w, tokens, "glm4", chatGLM, special, 0, 0, false)
}

// chatGLM is a chat template similar to that of the family, for synthetic vocabularies.
const chatGLM = `[gMASK]<sop>{% for message in messages %}<|{{ message['role'] }}|>
{{ message['content'] }}{% endfor %}{% if add_generation_prompt %}<|assistant|>
{% endif %}`
