package arch

import (
	"fmt"

	"sandwich/runtime/gguf"
	"sandwich/runtime/model"
	"sandwich/runtime/model/hf"
	"sandwich/runtime/model/metadata"
	"sandwich/runtime/model/vocab"
)

func init() {
	Register(Architecture{Name: "llama", HF: []string{"llama", "mistral", "mixtral"}, Decoder: llama,
		Vocabulary: llamaVocabulary,
		ReadHF: func(h *hf.File, c *model.Config) error {
			if h.LocalExperts > 0 {
				c.Experts = model.Experts{Count: h.LocalExperts, Used: h.ExpertsUsed, FFN: c.FFN}
			}
			return nil
		},
		Read: func(m *metadata.Reader, c *model.Config) {
			if m.CountOr("expert_count", model.MaxExperts) > 0 {
				m.Experts(c)
			}
		},
		Check: checkMaybe,
	})
}

// llama writes Touvron et al., LLaMA: Open and Efficient Foundation Language Models, 2023. Llama 3
// adds frequency factors of the rotation; Mixtral (Jiang et al.: Mixtral of Experts, 2024) adds
// experts.
func llama(b *model.Builder) {
	rope := b.Rope(model.Rope{})
	b.Embed(1) // X [T, hidden]
	for range b.Layers() {
		b.Norm("attn_norm")    // H [T, hidden]
		b.QKV(model.IfPresent) // Q [T, heads*headDim], K and V [T, kvHeads*headDim]
		b.Rotate(model.Rotation{Rope: rope})
		b.Attend(model.Attn{Scale: b.HeadScale()}) // Att [T, heads*headDim]
		b.AttnOutBias(model.IfPresent)             // Y [T, hidden]
		b.Norm("ffn_norm")                         // H [T, hidden]
		if b.Experts.Count > 0 {
			b.Mix(model.Mixture{Act: model.SwiGLU, Router: model.Router{Norm: true, Scale: 1}}) // Y [T, hidden]
		} else {
			b.Feed(model.Feed{In: model.BufH, Act: model.SwiGLU, Bias: model.IfPresent}) // Gate [T, ffn], Y [T, hidden]
		}
	}
	b.Norm("output_norm") // H [T, hidden]
	b.Head(1)             // Logits [wanted rows, vocab]
}

// llamaVocabulary writes a SentencePiece vocabulary below 65536 tokens, and Llama 3's byte-level
// BPE from there on.
func llamaVocabulary(w *gguf.Writer, tokens int) {
	if tokens < 1<<16 {
		vocab.WriteSPM(w, tokens)
		return
	}
	special := []string{"<|begin_of_text|>", "<|end_of_text|>", "<|reserved_special_token_0|>",
		"<|reserved_special_token_1|>", "<|finetune_right_pad_id|>", "<|reserved_special_token_2|>",
		"<|start_header_id|>", "<|end_header_id|>", "<|eom_id|>", "<|eot_id|>"}
	for i := 3; len(special) < 256; i++ {
		special = append(special, fmt.Sprintf("<|reserved_special_token_%d|>", i))
	}
	vocab.WriteBPE(w, tokens, "llama-bpe", chatLlama3, special, 0, 9, true)
}

// chatLlama3 is a chat template similar to that of the family, for synthetic vocabularies.
const chatLlama3 = `{% for message in messages %}{% if loop.first %}{{ bos_token }}{% endif %}<|start_header_id|>{{ message['role'] }}<|end_header_id|>

{{ message['content'] }}<|eot_id|>{% endfor %}{% if add_generation_prompt %}<|start_header_id|>assistant<|end_header_id|>

{% endif %}`
