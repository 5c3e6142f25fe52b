package model

import "sandwich/runtime/gguf"

func init() {
	Register(Architecture{Name: "smollm3", HF: []string{"smollm3"}, Decoder: smollm3, Vocabulary: smollmVocabulary})
}

// smollm3 writes llama without positions in every fourth layer (Bakouch et al.: SmolLM3, 2025; Yang
// et al.: Rope to Nope and Back Again, 2025).
func smollm3(b *Builder) {
	rope := b.Rope(Rope{})
	b.Embed(1) // X [T, hidden]
	for i := range b.Layers() {
		r := rope
		if i%4 == 3 {
			r = nil
		}
		b.Norm("attn_norm") // H [T, hidden]
		b.QKV(IfPresent)    // Q [T, heads*headDim], K and V [T, kvHeads*headDim]
		b.Rotate(Rotation{Rope: r})
		b.Attend(Attn{Scale: b.HeadScale()}) // Att [T, heads*headDim]
		b.AttnOut()                          // Y [T, hidden]
		b.Norm("ffn_norm")                   // H [T, hidden]
		b.FFN(SwiGLU)                        // Gate [T, ffn], Y [T, hidden]
	}
	b.Norm("output_norm") // H [T, hidden]
	b.Head(1)             // Logits [wanted rows, vocab]
}

// smollmVocabulary writes a byte-level BPE vocabulary with the tokens of ChatML.
func smollmVocabulary(w *gguf.Writer, tokens int) {
	writeBPE(w, tokens, "smollm", chatML, []string{"<|endoftext|>", "<|im_start|>", "<|im_end|>"}, 0, 2, false)
}
