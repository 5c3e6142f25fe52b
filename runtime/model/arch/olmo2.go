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
	Register(Architecture{Name: "olmo2", Decoder: olmo2, Vocabulary: olmoVocabulary,
		HF: []string{"olmo2", "olmo3"}, Knows: []string{"windows", "yarn"},
		ReadHF: func(h *hf.File, c *model.Config) error {
			if h.WindowSize() > 0 {
				c.Windows = h.Windows(4)
			}
			return nil
		},
		Read: func(m *metadata.Reader, c *model.Config) {
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
func olmo2(b *model.Builder) {
	far := b.Rope(model.Rope{Neox: true})
	near := b.Local(cmp.Or(b.Windows.Base, b.RopeBase), true)
	b.Embed(1) // X [T, hidden]
	for i := range b.Layers() {
		rope := far
		if b.Windows.Has(i) {
			rope = near
		}
		b.Project(model.Projection{In: model.BufX, Whole: true}) // Q [T, heads*headDim], K and V [T, kvHeads*headDim]
		b.RowNorm("attn_q_norm", model.BufQ, b.Heads*b.HeadDim)
		b.RowNorm("attn_k_norm", model.BufK, b.KVHeads*b.HeadDim)
		b.Rotate(model.Rotation{Rope: rope})
		b.Attend(model.Attn{Scale: b.HeadScale(), Window: b.Windows.Of(i)}) // Att [T, heads*headDim]
		b.AttnOut()                                                         // Y [T, hidden]
		b.Residual(model.Residual{Scale: 1, Post: "post_attention_norm"})
		b.Sum("attn_sum")
		b.Feed(model.Feed{In: model.BufX, Act: model.SwiGLU}) // Gate [T, ffn], Y [T, hidden]
		b.Residual(model.Residual{Scale: 1, Post: "post_ffw_norm"})
		if i+1 < b.Config.Layers {
			b.Sum("ffn_sum")
		}
	}
	b.Norm("output_norm") // H [T, hidden]
	b.Head(1)             // Logits [wanted rows, vocab]
}

// olmoVocabulary writes a byte-level BPE vocabulary with the tokens of ChatML.
func olmoVocabulary(w *gguf.Writer, tokens int) {
	vocab.WriteBPE(w, tokens, "dbrx", vocab.ChatML, []string{"<|endoftext|>", "<|im_start|>", "<|im_end|>"}, 0, 0,
		false)
}
