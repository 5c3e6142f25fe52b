package model

import (
	"fmt"

	"sandwich/runtime/gguf"
)

func init() {
	Register(Architecture{Name: "lfm2", Decoder: lfm2, Vocabulary: lfm2Vocabulary,
		HF: []string{"lfm2"}, ReadHF: (*HF).lfm2,
		Read: (*Metadata).shortConv,
		Check: func(c Config) error {
			if err := c.checkShortConv(); err != nil {
				return err
			}
			return checkDense(c)
		},
	})
	Register(Architecture{Name: "lfm2moe", Decoder: lfm2, Vocabulary: lfm2Vocabulary,
		HF: []string{"lfm2_moe"}, ReadHF: (*HF).lfm2Experts,
		Read: func(m *Metadata, c *Config) {
			m.shortConv(c)
			m.Experts(c)
			c.Experts.Dense = m.CountOr("leading_dense_block_count", 1<<10)
			c.Gating = Router{Score: m.gating().Score, Norm: true} // other keys are ignored, as in llama.cpp
		},
		Check: func(c Config) error {
			if err := c.checkShortConv(); err != nil {
				return err
			}
			return c.Experts.check()
		},
	})
}

// shortConv reads the metadata of layers with a short convolution.
func (m *Metadata) shortConv(c *Config) {
	c.Recurrence.Conv = m.Size("shortconv.l_cache", maxConv)
	c.Windows.Size = m.CountOr("attention.sliding_window", 1<<26)
}

// checkShortConv returns an error for a convolution without a state.
func (c Config) checkShortConv() error {
	if c.Recurrence.Conv < 2 {
		return fmt.Errorf("a convolution of %d positions is too short, it needs 2: the file is damaged",
			c.Recurrence.Conv)
	}
	return nil
}

// lfm2 writes Liquid AI: LFM2 Technical Report, 2025: gated short convolutions, and attention in
// the layers that have KV heads. lfm2moe has experts in all layers but the first ones.
func lfm2(b *Builder) {
	rope := b.Rope(Rope{Neox: true})
	b.Embed(1) // X [T, hidden]
	for i := range b.Layers() {
		b.Norm("attn_norm") // H [T, hidden]
		if b.heads.KV == 0 {
			b.ShortConv() // Mix [T, 3*hidden], Att and Y [T, hidden]
		} else {
			b.QKV(IfPresent) // Q [T, heads*headDim], K and V [T, kvHeads*headDim]
			b.Rotate(Rotation{Rope: rope, QNorm: "attn_q_norm", KNorm: "attn_k_norm"})
			b.Attend(Attn{Scale: b.HeadScale(), Window: b.Windows.Size}) // Att [T, heads*headDim]
			b.AttnOut()                                                  // Y [T, hidden]
		}
		b.Norm("ffn_norm") // H [T, hidden]
		if !b.Experts.in(i) {
			b.FFN(SwiGLU) // Gate [T, ffn], Y [T, hidden]
			continue
		}
		b.Mix(Mixture{Act: SwiGLU, Router: b.biasedRouter(Always)}) // Y [T, hidden]
	}
	b.Norm("token_embd_norm") // H [T, hidden]
	b.Head(1)                 // Logits [wanted rows, vocab]
}

// lfm2Vocabulary writes a byte-level BPE vocabulary with the tokens of ChatML.
func lfm2Vocabulary(w *gguf.Writer, tokens int) {
	special := []string{"<|pad|>", "<|startoftext|>", "<|endoftext|>", "<|im_start|>", "<|im_end|>"}
	writeBPE(w, tokens, "lfm2", chatLFM2, special, 1, 4, true)
}
