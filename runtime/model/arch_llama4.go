package model

import (
	"fmt"

	"sandwich/runtime/gguf"
)

func init() {
	Register(Architecture{Name: "llama4", Decoder: llama4, Vocabulary: llama4Vocabulary, Check: checkExperts,
		HF: []string{"llama4_text"}, ReadHF: (*HF).llama4,
		Read: func(m *Metadata, c *Config) {
			m.Experts(c)
			c.Experts.Every = m.Size("interleave_moe_layer_step", 1<<10)
			c.Experts.Shared = c.Experts.FFN
			if n, ok := m.source.Uint(m.key("attention.sliding_window")); !ok || n > 0 {
				c.Windows.Chunk = llama4Chunk
				m.near(c)
			}
		},
	})
}

// What the published models have, and files do not say: positions of a chunk, and of the steps by
// which layers without positions grow sharper; and how many experts the one model has whose heads
// are not normalized.
const (
	llama4Chunk      = 8192
	llama4Temper     = 0.1
	llama4Maverick   = 128
	llama4FullPeriod = 4
)

// llama4 is Meta: Llama 4, 2025: llama whose layers with positions see a chunk each, every fourth
// knows none and sees everything, and experts of which one is used beside a shared one, in some
// layers or all.
func llama4(b *Builder) {
	rope := b.Near(b.Rope(Rope{}))
	plain := b.Experts.Count != llama4Maverick
	if plain { // the norm stands behind the rotation, which makes nothing longer
		rope.Gain = 1
	}
	far := &Temper{Scale: llama4Temper, Length: llama4Chunk, Offset: 1}
	b.Embed(1) // X [T, hidden]
	for i := range b.Layers() {
		near := b.Windows.Chunk == 0 || i%llama4FullPeriod != llama4FullPeriod-1
		r, a := Rotation{Temper: far}, Attn{Scale: b.HeadScale()}
		if near {
			r = Rotation{Rope: rope, Plain: plain}
		}
		if near && b.Windows.Chunk > 0 {
			a.Store = fmt.Sprintf("chunks of %d", b.Windows.Chunk)
		}
		b.Norm("attn_norm") // H [T, hidden]
		b.QKV(IfPresent)    // Q [T, heads*headDim], K and V [T, kvHeads*headDim]
		b.Rotate(r)
		b.Attend(a)          // Att [T, heads*headDim]
		b.AttnOut()          // Y [T, hidden]
		b.Norm("ffn_norm")   // H [T, hidden]
		if b.Experts.in(i) { // Y [T, hidden]
			b.Shared(SwiGLU)
			b.Mix(Mixture{Act: SwiGLU, Router: Router{Score: Sigmoid, Scale: 1, Inward: true}, Onto: true})
		} else {
			b.Feed(Feed{In: BufH, Act: SwiGLU, Beside: true})
		}
	}
	b.Norm("output_norm") // H [T, hidden]
	b.Head(1)             // Logits [wanted rows, vocab]
}

// llama4Vocabulary is byte-level BPE with Llama 4's special tokens.
func llama4Vocabulary(w *gguf.Writer, tokens int) {
	special := []string{"<|begin_of_text|>", "<|end_of_text|>", "<|header_start|>", "<|header_end|>", "<|eom|>",
		"<|eot|>"}
	writeBPE(w, tokens, "llama4", chatLlama4, special, 0, 5, true)
}
