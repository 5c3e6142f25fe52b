package model

import (
	"cmp"

	"sandwich/runtime/gguf"
)

func init() {
	Register(Architecture{Name: "granite", Decoder: granite, Vocabulary: graniteVocabulary, HF: []string{"granite"},
		ReadHF: readGraniteHF,
		Read:   func(m *Metadata, c *Config) { m.granite(c) }})
	Register(Architecture{Name: "granitemoe", Decoder: granite, Vocabulary: graniteVocabulary,
		HF:     []string{"granitemoe", "granitemoeshared"},
		ReadHF: readGraniteExpertsHF,
		Read: func(m *Metadata, c *Config) {
			m.granite(c)
			m.Experts(c)
			c.Experts.Shared = m.SizeOr("expert_shared_feed_forward_length", 1<<20, 0)
		},
		Check: checkExperts,
	})
}

// granite reads the metadata of both families. rope.scaling.finetuned = false means that layers
// have no positions.
func (m *Metadata) granite(c *Config) {
	m.Scales(c)
	tuned, ok := m.Bool("rope.scaling.finetuned")
	c.NoRope = ok && !tuned
}

// granite writes IBM: Granite 3.0 Language Models, 2024: llama with four scale factors. granitemoe
// has experts, and a shared feed-forward if the file has one.
func granite(b *Builder) {
	rope := b.Rope(Rope{})
	if b.NoRope {
		rope = nil
	}
	residual := Residual{Scale: float32(cmp.Or(b.Scales.Residual, 1))}
	b.Embed(float32(cmp.Or(b.Scales.Embed, 1))) // X [T, hidden]
	for range b.Layers() {
		b.Norm("attn_norm") // H [T, hidden]
		b.QKV(IfPresent)    // Q [T, heads*headDim], K and V [T, kvHeads*headDim]
		b.Rotate(Rotation{Rope: rope})
		b.Attend(Attn{Scale: b.attnScale()}) // Att [T, heads*headDim]
		b.AttnOutBias(IfPresent)             // Y [T, hidden]
		b.Residual(residual)
		b.Norm("ffn_norm") // H [T, hidden]
		if b.Experts.Shared > 0 {
			b.Shared(SwiGLU) // Shared [T, shared ffn], Y [T, hidden]
		}
		if b.Experts.Count > 0 {
			b.Mix(Mixture{Act: SwiGLU, Router: Router{Norm: true, Scale: 1}, Accumulate: b.Experts.Shared > 0})
		} else {
			b.Feed(Feed{In: BufH, Act: SwiGLU, Bias: IfPresent}) // Gate [T, ffn], Y [T, hidden]
		}
		b.Residual(residual)
	}
	b.Norm("output_norm")                           // H [T, hidden]
	b.Head(float32(1 / cmp.Or(b.Scales.Logits, 1))) // Logits [wanted rows, vocab]
}

// graniteVocabulary writes a byte-level BPE vocabulary with the special tokens of Granite 3.
func graniteVocabulary(w *gguf.Writer, tokens int) {
	special := []string{"<|end_of_text|>", "<|start_of_role|>", "<|end_of_role|>"}
	writeBPE(w, tokens, "refact", chatGranite, special, 0, 0, false)
}

// readGraniteHF reads the scale factors of Granite's models.
func readGraniteHF(h *HF, c *Config) error {
	var f struct {
		EmbedTimes    float64 `json:"embedding_multiplier"`
		ResidualTimes float64 `json:"residual_multiplier"`
		AttnTimes     float64 `json:"attention_multiplier"`
		LogitsBy      float64 `json:"logits_scaling"`
	}
	if err := h.decode(&f); err != nil {
		return err
	}
	c.Scales = Scales{Embed: f.EmbedTimes, Residual: f.ResidualTimes, Attn: f.AttnTimes, Logits: f.LogitsBy}
	return nil
}

// readGraniteExpertsHF reads the sizes of experts in addition.
func readGraniteExpertsHF(h *HF, c *Config) error {
	var f struct {
		SharedAlone int `json:"shared_intermediate_size"`
	}
	if err := h.decode(&f); err != nil {
		return err
	}
	c.Experts = Experts{Count: h.LocalExperts, Used: h.ExpertsUsed, FFN: c.FFN, Shared: f.SharedAlone}
	return readGraniteHF(h, c)
}
