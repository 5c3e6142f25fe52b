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
	Register(Architecture{Name: "granite", Decoder: granite, Vocabulary: graniteVocabulary, HF: []string{"granite"},
		ReadHF: readGraniteHF,
		Read:   func(m *metadata.Reader, c *model.Config) { readGranite(m, c) }})
	Register(Architecture{Name: "granitemoe", Decoder: granite, Vocabulary: graniteVocabulary,
		HF:     []string{"granitemoe", "granitemoeshared"},
		ReadHF: readGraniteExpertsHF,
		Read: func(m *metadata.Reader, c *model.Config) {
			readGranite(m, c)
			m.Experts(c)
			c.Experts.Shared = m.SizeOr("expert_shared_feed_forward_length", 1<<20, 0)
		},
		Check: checkExperts,
	})
}

// readGranite reads the metadata of both families. rope.scaling.finetuned = false means that layers
// have no positions.
func readGranite(m *metadata.Reader, c *model.Config) {
	m.Scales(c)
	tuned, ok := m.Bool("rope.scaling.finetuned")
	c.NoRope = ok && !tuned
}

// granite writes IBM: Granite 3.0 Language Models, 2024: llama with four scale factors. granitemoe
// has experts, and a shared feed-forward if the file has one.
func granite(b *model.Builder) {
	rope := b.Rope(model.Rope{})
	if b.NoRope {
		rope = nil
	}
	residual := model.Residual{Scale: float32(cmp.Or(b.Scales.Residual, 1))}
	b.Embed(float32(cmp.Or(b.Scales.Embed, 1))) // X [T, hidden]
	for range b.Layers() {
		b.Norm("attn_norm")    // H [T, hidden]
		b.QKV(model.IfPresent) // Q [T, heads*headDim], K and V [T, kvHeads*headDim]
		b.Rotate(model.Rotation{Rope: rope})
		b.Attend(model.Attn{Scale: b.AttnScale()}) // Att [T, heads*headDim]
		b.AttnOutBias(model.IfPresent)             // Y [T, hidden]
		b.Residual(residual)
		b.Norm("ffn_norm") // H [T, hidden]
		if b.Experts.Shared > 0 {
			b.Shared(model.SwiGLU) // Shared [T, shared ffn], Y [T, hidden]
		}
		if b.Experts.Count > 0 {
			b.Mix(model.Mixture{Act: model.SwiGLU, Router: model.Router{Norm: true, Scale: 1},
				Accumulate: b.Experts.Shared > 0})
		} else {
			b.Feed(model.Feed{In: model.BufH, Act: model.SwiGLU, Bias: model.IfPresent}) // Gate [T, ffn], Y [T, hidden]
		}
		b.Residual(residual)
	}
	b.Norm("output_norm")                           // H [T, hidden]
	b.Head(float32(1 / cmp.Or(b.Scales.Logits, 1))) // Logits [wanted rows, vocab]
}

// graniteVocabulary writes a byte-level BPE vocabulary with the special tokens of Granite 3.
func graniteVocabulary(w *gguf.Writer, tokens int) {
	special := []string{"<|end_of_text|>", "<|start_of_role|>", "<|end_of_role|>"}
	vocab.WriteBPE(w, tokens, "refact", chatGranite, special, 0, 0, false)
}

// readGraniteHF reads the scale factors of Granite's models.
func readGraniteHF(h *hf.File, c *model.Config) error {
	var f struct {
		EmbedTimes    float64 `json:"embedding_multiplier"`
		ResidualTimes float64 `json:"residual_multiplier"`
		AttnTimes     float64 `json:"attention_multiplier"`
		LogitsBy      float64 `json:"logits_scaling"`
	}
	if err := h.Decode(&f); err != nil {
		return err
	}
	c.Scales = model.Scales{Embed: f.EmbedTimes, Residual: f.ResidualTimes, Attn: f.AttnTimes, Logits: f.LogitsBy}
	return nil
}

// readGraniteExpertsHF reads the sizes of experts in addition.
func readGraniteExpertsHF(h *hf.File, c *model.Config) error {
	var f struct {
		SharedAlone int `json:"shared_intermediate_size"`
	}
	if err := h.Decode(&f); err != nil {
		return err
	}
	c.Experts = model.Experts{Count: h.LocalExperts, Used: h.ExpertsUsed, FFN: c.FFN, Shared: f.SharedAlone}
	return readGraniteHF(h, c)
}

// chatGranite is a chat template similar to that of the family, for synthetic vocabularies.
const chatGranite = `{% for message in messages %}<|start_of_role|>{{ message['role'] }}<|end_of_role|>{{ message['content'] }}<|end_of_text|>
{% endfor %}{% if add_generation_prompt %}<|start_of_role|>assistant<|end_of_role|>{% endif %}`
