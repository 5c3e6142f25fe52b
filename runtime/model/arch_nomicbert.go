package model

func init() {
	Register(Architecture{Name: "nomic-bert", Decoder: nomicBERT, Vocabulary: bertVocabulary,
		HF: []string{"nomic_bert"}, Knows: []string{"acts", "gpt2"}, ReadHF: (*HF).nomic, Read: encoder})
}

// nomicBERT writes Nussbaum et al., Nomic Embed: Training a Reproducible Long Context Text
// Embedder, 2024: bert with a rotation instead of learned positions, and SwiGLU.
func nomicBERT(b *Builder) {
	rope := b.Rope(Rope{Neox: true})
	b.EmbedPositions(false)        // X [T, hidden]
	b.LayerNorm("token_embd_norm") // X [T, hidden]
	for range b.Layers() {
		b.project(projection{In: BufX, Bias: IfPresent, Fused: b.Fused}) // Q, K and V [T, heads*headDim]
		b.Rotate(Rotation{Rope: rope})
		b.Attend(Attn{Scale: b.HeadScale()})                 // Att [T, heads*headDim]
		b.AttnOutBias(IfPresent)                             // Y [T, hidden]
		b.LayerNorm("attn_output_norm")                      // X [T, hidden]
		b.Feed(Feed{In: BufX, Act: SwiGLU, Bias: IfPresent}) // Gate [T, ffn], Y [T, hidden]
		b.LayerNorm("layer_output_norm")                     // X [T, hidden]
	}
	b.Pool(BufX) // Logits [texts, width]
}
