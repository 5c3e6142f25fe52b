package arch

import (
	"cmp"
	"fmt"
	"slices"

	"sandwich/internal/message"
	"sandwich/runtime/model"
	"sandwich/runtime/model/hf"
	"sandwich/runtime/model/metadata"
	"sandwich/runtime/model/vocab"
)

func init() {
	Register(Architecture{Name: "bert", Decoder: bert, Vocabulary: vocab.WriteWordPiece,
		HF: []string{"bert", "xlm-roberta"}, Knows: []string{"acts"}, ReadHF: readBertHF, Read: encoder})
}

// bert writes the encoder of Devlin et al., BERT: Pre-training of Deep Bidirectional Transformers
// for Language Understanding, 2018: bidirectional attention, learned positions, and a LayerNorm of
// X after each residual sum.
func bert(b *model.Builder) {
	b.EmbedPositions(true)         // X [T, hidden]
	b.LayerNorm("token_embd_norm") // X [T, hidden]
	for range b.Layers() {
		b.Project(model.Projection{In: model.BufX, Bias: model.Usually,
			Fused: b.Fused}) // Q, K and V [T, heads*headDim]
		b.Rotate(model.Rotation{})
		b.Attend(model.Attn{Scale: b.HeadScale()}) // Att [T, heads*headDim]
		b.AttnOutBias(model.Usually)               // Y [T, hidden]
		b.LayerNorm("attn_output_norm")            // X [T, hidden]
		b.Feed(model.Feed{In: model.BufX, Act: model.GELU, Single: true,
			Bias: model.Usually}) // Gate [T, ffn], Y [T, hidden]
		b.LayerNorm("layer_output_norm") // X [T, hidden]
	}
	b.Pool(model.BufX) // Logits [texts, width]
}

// encoder reads the metadata that the families of BERT have in addition to sizes.
func encoder(m *metadata.Reader, c *model.Config) {
	c.Bidirectional, c.Fused = true, m.Tensors("attn_qkv.weight", 1)[0]
}

// readEncoderHF reads what all encoders have, and checks that the file has their sizes.
func readEncoderHF(h *hf.File, c *model.Config, acts ...string) error {
	var f struct {
		TypeVocab *int `json:"type_vocab_size"`
		Decodes   bool `json:"is_decoder"`
	}
	if err := h.Decode(&f); err != nil {
		return err
	}
	if err := h.Require(map[string]int{"hidden_size": h.Hidden, "num_hidden_layers": h.Layers,
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
		return fmt.Errorf("is_decoder is %w in %s", model.ErrUnsupported, h.ModelType)
	case h.Act != "" && !slices.Contains(acts, h.Act):
		return fmt.Errorf("hidden_act %.40q is %w in %s: it must be %s", h.Act, model.ErrUnsupported, h.ModelType,
			message.Or(acts))
	case h.HeadDim == 0 && h.Heads > 0 && h.Hidden%h.Heads != 0:
		return fmt.Errorf("hidden_size %d cannot be divided among %d heads (num_attention_heads)", h.Hidden, h.Heads)
	}
	return nil
}

// readBertHF reads the families with learned positions. RoBERTa's positions start after that of the
// padding token.
func readBertHF(h *hf.File, c *model.Config) error {
	var f struct {
		Pad          *int   `json:"pad_token_id"`
		PositionType string `json:"position_embedding_type"`
	}
	if err := h.Decode(&f); err != nil {
		return err
	}
	if err := readEncoderHF(h, c, "gelu", "gelu_new", "gelu_pytorch_tanh"); err != nil {
		return err
	}
	if f.PositionType != "" && f.PositionType != "absolute" {
		return fmt.Errorf("position_embedding_type %.40q is %w: it must be absolute", f.PositionType,
			model.ErrUnsupported)
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

func init() {
	Register(Architecture{Name: "nomic-bert", Decoder: nomicBERT, Vocabulary: vocab.WriteWordPiece,
		HF: []string{"nomic_bert"}, Knows: []string{"acts", "gpt2"}, ReadHF: readNomicHF, Read: encoder})
}

// nomicBERT writes Nussbaum et al., Nomic Embed: Training a Reproducible Long Context Text
// Embedder, 2024: bert with a rotation instead of learned positions, and SwiGLU.
func nomicBERT(b *model.Builder) {
	rope := b.Rope(model.Rope{Neox: true})
	b.EmbedPositions(false)        // X [T, hidden]
	b.LayerNorm("token_embd_norm") // X [T, hidden]
	for range b.Layers() {
		b.Project(model.Projection{In: model.BufX, Bias: model.IfPresent,
			Fused: b.Fused}) // Q, K and V [T, heads*headDim]
		b.Rotate(model.Rotation{Rope: rope})
		b.Attend(model.Attn{Scale: b.HeadScale()})                                   // Att [T, heads*headDim]
		b.AttnOutBias(model.IfPresent)                                               // Y [T, hidden]
		b.LayerNorm("attn_output_norm")                                              // X [T, hidden]
		b.Feed(model.Feed{In: model.BufX, Act: model.SwiGLU, Bias: model.IfPresent}) // Gate [T, ffn], Y [T, hidden]
		b.LayerNorm("layer_output_norm")                                             // X [T, hidden]
	}
	b.Pool(model.BufX) // Logits [texts, width]
}

// readNomicHF reads the encoder of nomic-embed-text, whose files have q, k and v in one tensor.
func readNomicHF(h *hf.File, c *model.Config) error {
	var f struct {
		OldRotary   *float64 `json:"rotary_emb_fraction"`
		Interleaved bool     `json:"rotary_emb_interleaved"`
		BaseScale   *float64 `json:"rotary_emb_scale_base"`
		PreNorm     bool     `json:"prenorm"`
		RMSNorm     bool     `json:"use_rms_norm"`
		Parallel    bool     `json:"parallel_block"`
		QKVBias     bool     `json:"qkv_proj_bias"`
		UpBias      bool     `json:"mlp_fc1_bias"`
		DownBias    bool     `json:"mlp_fc2_bias"`
		MoEEvery    int      `json:"moe_every_n_layers"`
	}
	if err := h.Decode(&f); err != nil {
		return err
	}
	if err := readEncoderHF(h, c, "swiglu", "silu"); err != nil {
		return err
	}
	c.Fused, c.RopeBase = true, cmp.Or(h.RopeTheta, 1000)
	var has string
	for name, is := range map[string]bool{"moe_every_n_layers": f.MoEEvery > 0, "prenorm": f.PreNorm,
		"use_rms_norm": f.RMSNorm, "parallel_block": f.Parallel, "rotary_emb_interleaved": f.Interleaved,
		"rotary_emb_scale_base": f.BaseScale != nil, "qkv_proj_bias": f.QKVBias, "mlp_fc1_bias": f.UpBias,
		"mlp_fc2_bias": f.DownBias, "rotary_emb_fraction": f.OldRotary != nil && *f.OldRotary != 1} {
		if is && (has == "" || name < has) { // the first name: maps have no order
			has = name
		}
	}
	if has != "" {
		return fmt.Errorf("%s is %w in nomic_bert", has, model.ErrUnsupported)
	}
	return nil
}
