package model

import (
	"fmt"
	"math"

	"sandwich/runtime/gguf"
)

func init() {
	Register(Architecture{Name: "gemma2", Decoder: gemma2, Vocabulary: gemmaVocabulary, Check: checkWindows,
		HF: []string{"gemma2"}, Knows: []string{"windows", "gelu"},
		ReadHF: func(h *HF, c *Config) error { return readGemmaHF(h, c, 2) },
		Read: func(m *Metadata, c *Config) {
			if m.Has("attention.sliding_window") {
				m.Windows(c, 2)
			} else {
				c.Windows = Windows{Size: 4096, Period: 2}
			}
			m.near(c)
			c.Scales = Scales{AttnCap: 50, LogitCap: 30} // the defaults of llama.cpp
			m.caps(c)
			if c.Layers == 46 { // the 27B model
				c.Scales.Attn = 1 / math.Sqrt(float64(c.Hidden)/float64(c.Heads))
			}
		},
	})
}

// gemma2 writes Riviere et al., Gemma 2: Improving Open Language Models at a Practical Size, 2024:
// windows in every second layer, soft caps, norms on both sides of a block, GeGLU.
func gemma2(b *Builder) {
	far := b.Rope(Rope{Neox: true})
	near := b.Near(far)
	b.Embed(b.rootOfHidden()) // X [T, hidden]
	for i := range b.Layers() {
		rope := far
		if b.Windows.Has(i) {
			rope = near
		}
		b.Norm("attn_norm") // H [T, hidden]
		b.QKV(IfPresent)    // Q [T, heads*headDim], K and V [T, kvHeads*headDim]
		b.Rotate(Rotation{Rope: rope})
		b.Attend(Attn{Scale: b.attnScale(), Window: b.Windows.Of(i), Softcap: float32(b.Scales.AttnCap)})
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

// rootOfHidden returns the factor of Gemma's embedding.
func (c Config) rootOfHidden() float32 { return float32(math.Sqrt(float64(c.Hidden))) }

// gemmaVocabulary writes a SentencePiece vocabulary that begins with Gemma's special tokens.
func gemmaVocabulary(w *gguf.Writer, tokens int) { writeGemma(w, tokens, false) }

// writeGemma writes Gemma's vocabulary; ends says that every text gets an end token.
func writeGemma(w *gguf.Writer, tokens int, ends bool) {
	v := spm{special: []string{"<pad>", "<eos>", "<bos>", "<unk>", "<start_of_turn>", "<end_of_turn>"}, unknown: 3,
		bos: 2, eos: 1, template: chatGemma, ends: ends}
	for i := 0; tokens > 1<<16 && i < 99; i++ {
		v.special = append(v.special, fmt.Sprintf("<unused%d>", i))
	}
	v.write(w, tokens)
	w.SetUint32("tokenizer.ggml.padding_token_id", 0)
	w.SetUint32("tokenizer.ggml.eot_token_id", 5)
	w.SetBool("tokenizer.ggml.add_space_prefix", false)
}

// readGemmaHF reads windows, soft caps and scale of Gemma's configurations, with Gemma's defaults.
// The last layer of each period has full attention.
func readGemmaHF(h *HF, c *Config, period int) error {
	var f struct {
		QueryScalar float64 `json:"query_pre_attn_scalar"`
		AttnCap     float64 `json:"attn_logit_softcapping"`
	}
	if err := h.decode(&f); err != nil {
		return err
	}
	c.Windows, c.Tied = h.windows(period), h.Tied == nil || *h.Tied
	c.Scales = Scales{AttnCap: f.AttnCap, LogitCap: h.LogitCap}
	if f.QueryScalar > 0 && f.QueryScalar != float64(c.HeadDim) {
		c.Scales.Attn = 1 / math.Sqrt(f.QueryScalar)
	}
	return nil
}
