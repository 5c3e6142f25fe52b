package model

func init() {
	Register(Architecture{Name: "qwen3", HF: []string{"qwen3"}, Decoder: qwen3, Vocabulary: qwenVocabulary})
}

// qwen3 writes Yang et al., Qwen3 Technical Report, 2025: llama with norms of the heads of Q and K.
func qwen3(b *Builder) {
	rope := b.Rope(Rope{Neox: true})
	b.Embed(1) // X [T, hidden]
	for range b.Layers() {
		b.Norm("attn_norm") // H [T, hidden]
		b.QKV(IfPresent)    // Q [T, heads*headDim], K and V [T, kvHeads*headDim]
		b.Rotate(Rotation{Rope: rope, QNorm: "attn_q_norm", KNorm: "attn_k_norm"})
		b.Attend(Attn{Scale: b.HeadScale()}) // Att [T, heads*headDim]
		b.AttnOut()                          // Y [T, hidden]
		b.Norm("ffn_norm")                   // H [T, hidden]
		b.FFN(SwiGLU)                        // Gate [T, ffn], Y [T, hidden]
	}
	b.Norm("output_norm") // H [T, hidden]
	b.Head(1)             // Logits [wanted rows, vocab]
}
