package model

import (
	"cmp"
	"fmt"
	"slices"

	"sandwich/runtime/gguf"
)

func init() {
	Register(Architecture{Name: "bert", Decoder: bert, Vocabulary: bertVocabulary,
		HF: []string{"bert", "xlm-roberta"}, Knows: []string{"acts"}, ReadHF: readBertHF, Read: encoder})
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
	c.Bidirectional, c.Fused = true, m.Tensors("attn_qkv.weight", 1)[0]
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

// readEncoderHF reads what all encoders have, and checks that the file has their sizes.
func readEncoderHF(h *HF, c *Config, acts ...string) error {
	var f struct {
		TypeVocab *int `json:"type_vocab_size"`
		Decodes   bool `json:"is_decoder"`
	}
	if err := h.decode(&f); err != nil {
		return err
	}
	if err := h.require(map[string]int{"hidden_size": h.Hidden, "num_hidden_layers": h.Layers,
		"num_attention_heads": h.Heads, "intermediate_size": h.FFN, "vocab_size": h.Vocab,
		"max_position_embeddings": h.Context}); err != nil {
		return err
	}
	types := 2
	if f.TypeVocab != nil {
		types = *f.TypeVocab
	}
	c.Eps, c.Bidirectional, c.Types, c.Tied = cmp.Or(h.LayerEps, 1e-12), true, types, false
	switch {
	case f.Decodes:
		return fmt.Errorf("is_decoder is %w in %s", ErrUnsupported, h.ModelType)
	case h.Act != "" && !slices.Contains(acts, h.Act):
		return fmt.Errorf("hidden_act %.40q is %w in %s: it must be %s", h.Act, ErrUnsupported, h.ModelType,
			anyOf(acts))
	case h.HeadDim == 0 && h.Heads > 0 && h.Hidden%h.Heads != 0:
		return fmt.Errorf("hidden_size %d cannot be divided among %d heads (num_attention_heads)", h.Hidden, h.Heads)
	}
	return nil
}

// readBertHF reads the families with learned positions. RoBERTa's positions start after that of the
// padding token.
func readBertHF(h *HF, c *Config) error {
	var f struct {
		Pad          *int   `json:"pad_token_id"`
		PositionType string `json:"position_embedding_type"`
	}
	if err := h.decode(&f); err != nil {
		return err
	}
	if err := readEncoderHF(h, c, "gelu", "gelu_new", "gelu_pytorch_tanh"); err != nil {
		return err
	}
	if f.PositionType != "" && f.PositionType != "absolute" {
		return fmt.Errorf("position_embedding_type %.40q is %w: it must be absolute", f.PositionType, ErrUnsupported)
	}
	if h.ModelType == "bert" {
		return nil
	}
	pad := 1
	if f.Pad != nil {
		pad = *f.Pad
	}
	if pad < 0 || pad >= h.Context-1 {
		return fmt.Errorf("max_position_embeddings %d leaves no position after pad_token_id %d", h.Context, pad)
	}
	c.Context -= pad + 1
	return nil
}
