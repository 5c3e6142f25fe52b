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

// Values of the published models that files do not contain.
const (
	llama4Chunk       = 8192 // positions of an attention chunk, and of a step of the temperature
	llama4Temperature = 0.1
	llama4Maverick    = 128 // experts of the one model whose heads are not normalized
	llama4FullPeriod  = 4   // the last of so many layers has full attention
)

// llama4 writes Meta: Llama 4, 2025: llama with attention in chunks, every fourth layer with full
// attention and without positions, and in some or all layers one routed and one shared expert per
// token.
func llama4(b *Builder) {
	rope := b.Near(b.Rope(Rope{}))
	plain := b.Experts.Count != llama4Maverick
	if plain { // the norm follows the rotation in the original model, so the gain must not apply
		rope.Gain = 1
	}
	far := &AttnTemperature{Scale: llama4Temperature, Length: llama4Chunk, Offset: 1}
	b.Embed(1) // X [T, hidden]
	for i := range b.Layers() {
		near := b.Windows.Chunk == 0 || i%llama4FullPeriod != llama4FullPeriod-1
		r, a := Rotation{AttnTemperature: far}, Attn{Scale: b.HeadScale()}
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
			b.Mix(Mixture{Act: SwiGLU, Router: Router{Score: Sigmoid, Scale: 1, ScaleInput: true}, Accumulate: true})
		} else {
			b.Feed(Feed{In: BufH, Act: SwiGLU, Shared: true})
		}
	}
	b.Norm("output_norm") // H [T, hidden]
	b.Head(1)             // Logits [wanted rows, vocab]
}

// llama4Vocabulary writes a byte-level BPE vocabulary with Llama 4's special tokens.
func llama4Vocabulary(w *gguf.Writer, tokens int) {
	special := []string{"<|begin_of_text|>", "<|end_of_text|>", "<|header_start|>", "<|header_end|>", "<|eom|>",
		"<|eot|>"}
	writeBPE(w, tokens, "llama4", chatLlama4, special, 0, 5, true)
}
