package model

import (
	"fmt"
	"math"

	"sandwich/runtime/gguf"
)

func init() {
	Register(Architecture{Name: "llama", HF: []string{"llama", "mistral", "mixtral"}, Decoder: llama,
		Vocabulary: llamaVocabulary,
		ReadHF: func(h *HF, c *Config) error {
			if h.LocalExperts > 0 {
				c.Experts = Experts{Count: h.LocalExperts, Used: h.ExpertsUsed, FFN: c.FFN}
			}
			return nil
		},
		Read: func(m *Metadata, c *Config) {
			if m.Has("expert_count") {
				m.Experts(c)
			}
		},
		Check: checkMaybe,
	})
}

// llama writes Touvron et al., LLaMA: Open and Efficient Foundation Language Models, 2023. Llama 3
// adds frequency factors of the rotation; Mixtral (Jiang et al.: Mixtral of Experts, 2024) adds
// experts.
func llama(b *Builder) {
	rope := b.Rope(Rope{})
	b.Embed(1) // X [T, hidden]
	for range b.Layers() {
		b.Norm("attn_norm") // H [T, hidden]
		b.QKV(IfPresent)    // Q [T, heads*headDim], K and V [T, kvHeads*headDim]
		b.Rotate(Rotation{Rope: rope})
		b.Attend(Attn{Scale: b.HeadScale()}) // Att [T, heads*headDim]
		b.AttnOutBias(IfPresent)             // Y [T, hidden]
		b.Norm("ffn_norm")                   // H [T, hidden]
		if b.Experts.Count > 0 {
			b.Mix(Mixture{Act: SwiGLU, Router: Router{Norm: true, Scale: 1}}) // Y [T, hidden]
		} else {
			b.Feed(Feed{In: BufH, Act: SwiGLU, Bias: IfPresent}) // Gate [T, ffn], Y [T, hidden]
		}
	}
	b.Norm("output_norm") // H [T, hidden]
	b.Head(1)             // Logits [wanted rows, vocab]
}

// Llama3Rope is the rule by which Llama 3.1 extends its context: frequencies of waves longer than
// Original/Low are divided by Factor, those of waves shorter than Original/High are kept, and the
// ones in between are interpolated.
type Llama3Rope struct {
	Factor, Low, High float64
	Original          int // context before the extension, in tokens
}

// factors returns the divisors of the angles of a head's dim/2 pairs, for rotation base base.
func (r Llama3Rope) factors(base float64, dim int) []float32 {
	out := make([]float32, dim/2)
	for i := range out {
		wave := 2 * math.Pi * math.Pow(base, float64(2*i)/float64(dim))
		switch {
		case wave < float64(r.Original)/r.High:
			out[i] = 1
		case wave >= float64(r.Original)/r.Low:
			out[i] = float32(r.Factor)
		default:
			smooth := (float64(r.Original)/wave - r.Low) / (r.High - r.Low)
			out[i] = float32(1 / ((1-smooth)/r.Factor + smooth))
		}
	}
	return out
}

// check returns an error for values outside the rule.
func (r *Llama3Rope) check() error {
	if !(r.Factor > 0) || !(r.Low > 0) || !(r.High >= r.Low) || r.Original < 1 {
		return fmt.Errorf("invalid Llama 3 RoPE scaling %+v: "+
			"it needs factor > 0, 0 < low <= high and an original context", *r)
	}
	return nil
}

// llamaVocabulary writes a SentencePiece vocabulary below 65536 tokens, and Llama 3's byte-level
// BPE from there on.
func llamaVocabulary(w *gguf.Writer, tokens int) {
	if tokens < 1<<16 {
		writeSPM(w, tokens)
		return
	}
	special := []string{"<|begin_of_text|>", "<|end_of_text|>", "<|reserved_special_token_0|>",
		"<|reserved_special_token_1|>", "<|finetune_right_pad_id|>", "<|reserved_special_token_2|>",
		"<|start_header_id|>", "<|end_header_id|>", "<|eom_id|>", "<|eot_id|>"}
	for i := 3; len(special) < 256; i++ {
		special = append(special, fmt.Sprintf("<|reserved_special_token_%d|>", i))
	}
	writeBPE(w, tokens, "llama-bpe", chatLlama3, special, 0, 9, true)
}
