package model

import (
	"cmp"
	"math"
)

func init() {
	Register(Architecture{Name: "gemma3", Decoder: gemma3, Vocabulary: gemmaVocabulary, Check: checkMaybeWindows,
		HF: []string{"gemma3_text"}, Knows: []string{"windows", "gelu", "linear"},
		ReadHF: readGemma3HF,
		Read: func(m *Metadata, c *Config) {
			if m.Has("attention.sliding_window") { // else all layers have full attention
				m.Windows(c, 6)
			}
			c.Scales.LogitCap = m.PositiveOr("final_logit_softcapping", 0)
			c.Windows.Base = m.PositiveOr("rope.freq_base_swa", 10000)
			if c.Layers == 62 { // the 27B model
				c.Scales.Attn = 1 / math.Sqrt(float64(c.Hidden)/float64(c.Heads))
			}
		},
	})
}

// gemma3 writes Kamath et al., Gemma 3 Technical Report, 2025: gemma2 with norms of heads instead
// of soft caps, five windowed layers for each full one, and a rotation for each kind.
func gemma3(b *Builder) {
	far := b.Rope(Rope{Neox: true})
	near := b.Rope(Rope{Base: b.Windows.Base, Neox: true, Gain: b.RopeGain})
	b.Embed(b.rootOfHidden()) // X [T, hidden]
	for i := range b.Layers() {
		rope := far
		if b.Windows.Has(i) {
			rope = near
		}
		b.Norm("attn_norm") // H [T, hidden]
		b.QKV(IfPresent)    // Q [T, heads*headDim], K and V [T, kvHeads*headDim]
		b.Rotate(Rotation{Rope: rope, QNorm: "attn_q_norm", KNorm: "attn_k_norm"})
		b.Attend(Attn{Scale: b.attnScale(), Window: b.Windows.Of(i)})
		b.AttnOut() // Y [T, hidden]
		b.Residual(Residual{Scale: 1, Post: "post_attention_norm"})
		b.Norm("ffn_norm") // H [T, hidden]
		b.FFN(GeGLU)       // Gate [T, ffn], Y [T, hidden]
		b.Residual(Residual{Scale: 1, Post: "post_ffw_norm"})
	}
	b.Norm("output_norm") // H [T, hidden]
	b.Head(1)             // Logits [wanted rows, vocab]
	b.Cap(b.Scales.LogitCap)
}

// readGemma3HF reads the configuration of Gemma 2, and the rotation base of windowed layers.
func readGemma3HF(h *HF, c *Config) error {
	var f struct {
		LocalTheta float64 `json:"rope_local_base_freq"`
	}
	if err := h.decode(&f); err != nil {
		return err
	}
	if err := readGemmaHF(h, c, 6); err != nil {
		return err
	}
	c.Windows.Base = cmp.Or(f.LocalTheta, 10000)
	return nil
}
