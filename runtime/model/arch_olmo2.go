package model

import (
	"cmp"

	"sandwich/runtime/gguf"
)

func init() {
	Register(Architecture{Name: "olmo2", Decoder: olmo2, Vocabulary: olmoVocabulary,
		HF: []string{"olmo2", "olmo3"}, Knows: []string{"windows", "yarn"},
		ReadHF: func(h *HF, c *Config) error {
			if h.sliding() > 0 {
				c.Windows = h.windows(4)
			}
			return nil
		},
		Read: func(m *Metadata, c *Config) {
			if m.Has("attention.sliding_window") {
				m.Windows(c, 4)
			}
		},
		Check: checkMaybeWindows,
	})
}

// olmo2 writes Walsh et al.: 2 OLMo 2 Furious, 2024: norms only after the blocks, and norms over
// all heads of queries and of keys. OLMo 3 (2025) has windows in three of four layers, whose
// rotation is not scaled.
func olmo2(b *Builder) {
	far := b.Rope(Rope{Neox: true})
	near := b.Local(cmp.Or(b.Windows.Base, b.RopeBase), true)
	b.Embed(1) // X [T, hidden]
	for i := range b.Layers() {
		rope := far
		if b.Windows.Has(i) {
			rope = near
		}
		b.project(projection{In: BufX, Whole: true}) // Q [T, heads*headDim], K and V [T, kvHeads*headDim]
		b.RowNorm("attn_q_norm", BufQ, b.Heads*b.HeadDim)
		b.RowNorm("attn_k_norm", BufK, b.KVHeads*b.HeadDim)
		b.Rotate(Rotation{Rope: rope})
		b.Attend(Attn{Scale: b.HeadScale(), Window: b.Windows.Of(i)}) // Att [T, heads*headDim]
		b.AttnOut()                                                   // Y [T, hidden]
		b.Residual(Residual{Scale: 1, Post: "post_attention_norm"})
		b.Sum("attn_sum")
		b.Feed(Feed{In: BufX, Act: SwiGLU}) // Gate [T, ffn], Y [T, hidden]
		b.Residual(Residual{Scale: 1, Post: "post_ffw_norm"})
		if i+1 < b.Config.Layers {
			b.Sum("ffn_sum")
		}
	}
	b.Norm("output_norm") // H [T, hidden]
	b.Head(1)             // Logits [wanted rows, vocab]
}

// olmoVocabulary writes a byte-level BPE vocabulary with the tokens of ChatML.
func olmoVocabulary(w *gguf.Writer, tokens int) {
	writeBPE(w, tokens, "dbrx", chatML, []string{"<|endoftext|>", "<|im_start|>", "<|im_end|>"}, 0, 0, false)
}
