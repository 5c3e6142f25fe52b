package model

import "sandwich/runtime/gguf"

func init() {
	Register(Architecture{Name: "bert", Decoder: bert, Vocabulary: bertVocabulary,
		HF: []string{"bert", "xlm-roberta"}, Knows: []string{"acts"}, ReadHF: (*HF).bert, Read: encoder})
}

// bert writes the encoder of Devlin et al., BERT: Pre-training of Deep Bidirectional Transformers
// for Language Understanding, 2018: bidirectional attention, learned positions, and a LayerNorm of
// X after each residual sum.
func bert(b *Builder) {
	b.EmbedPositions(true)         // X [T, hidden]
	b.LayerNorm("token_embd_norm") // X [T, hidden]
	for range b.Layers() {
		b.project(projection{In: BufX, Bias: Usually, Fused: b.Fused}) // Q, K and V [T, heads*headDim]
		b.Rotate(Rotation{})
		b.Attend(Attn{Scale: b.HeadScale()})                           // Att [T, heads*headDim]
		b.AttnOutBias(Usually)                                         // Y [T, hidden]
		b.LayerNorm("attn_output_norm")                                // X [T, hidden]
		b.Feed(Feed{In: BufX, Act: GELU, Single: true, Bias: Usually}) // Gate [T, ffn], Y [T, hidden]
		b.LayerNorm("layer_output_norm")                               // X [T, hidden]
	}
	b.Pool(BufX) // Logits [texts, width]
}

// encoder reads the metadata that the families of BERT have in addition to sizes.
func encoder(m *Metadata, c *Config) {
	c.Bidirectional, c.Fused = true, m.source.Tensors("attn_qkv.weight", 1)[0]
}

// bertVocabulary writes a WordPiece vocabulary that begins with BERT's special tokens.
func bertVocabulary(w *gguf.Writer, tokens int) {
	const start = "▁" // of a word
	var v vocabulary
	v.add(tokenControl, "[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
	for _, c := range letters + ".,!?'-0123456789" {
		v.add(tokenNormal, start+string(c), string(c))
	}
	for _, p := range pieces(start, tokens-len(v.tokens)+len(letters)) {
		if p.left != start && len(v.tokens) < tokens { // single letters at the start of a word are already listed
			v.add(tokenNormal, p.left+p.right)
		}
	}
	w.SetString("tokenizer.ggml.model", "bert")
	w.SetString("tokenizer.ggml.pre", "default")
	w.SetStrings("tokenizer.ggml.tokens", v.tokens)
	w.SetInts("tokenizer.ggml.token_type", v.types)
	w.SetUint32("tokenizer.ggml.token_type_count", 2)
	for key, id := range map[string]uint32{"padding": 0, "unknown": 1, "cls": 2, "bos": 2, "seperator": 3, "eos": 3,
		"mask": 4} {
		w.SetUint32("tokenizer.ggml."+key+"_token_id", id)
	}
}
