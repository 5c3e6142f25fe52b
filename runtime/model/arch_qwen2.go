package model

import "sandwich/runtime/gguf"

func init() {
	Register(Architecture{Name: "qwen2", HF: []string{"qwen2"}, Decoder: qwen2, Vocabulary: qwenVocabulary})
}

// qwen2 writes Yang et al., Qwen2 Technical Report, 2024: llama with biases of q, k and v.
func qwen2(b *Builder) {
	rope := b.Rope(Rope{Neox: true})
	b.Embed(1) // X [T, hidden]
	for range b.Layers() {
		b.Norm("attn_norm") // H [T, hidden]
		b.QKV(Usually)      // Q [T, heads*headDim], K and V [T, kvHeads*headDim]
		b.Rotate(Rotation{Rope: rope})
		b.Attend(Attn{Scale: b.HeadScale()}) // Att [T, heads*headDim]
		b.AttnOut()                          // Y [T, hidden]
		b.Norm("ffn_norm")                   // H [T, hidden]
		b.FFN(SwiGLU)                        // Gate [T, ffn], Y [T, hidden]
	}
	b.Norm("output_norm")    // H [T, hidden]
	b.HeadBias(1, IfPresent) // Logits [wanted rows, vocab]
}

// qwenVocabulary writes a byte-level BPE vocabulary with the special tokens of Qwen.
func qwenVocabulary(w *gguf.Writer, tokens int) {
	special := []string{"<|endoftext|>", "<|im_start|>", "<|im_end|>"}
	writeBPE(w, tokens, "qwen2", chatML, special, 0, 2, false)
}
