package model

import (
	"cmp"
	"fmt"
)

func init() {
	Register(Architecture{Name: "nomic-bert", Decoder: nomicBERT, Vocabulary: bertVocabulary,
		HF: []string{"nomic_bert"}, Knows: []string{"acts", "gpt2"}, ReadHF: readNomicHF, Read: encoder})
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

// readNomicHF reads the encoder of nomic-embed-text, whose files have q, k and v in one tensor.
func readNomicHF(h *HF, c *Config) error {
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
	if err := h.decode(&f); err != nil {
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
		return fmt.Errorf("%s is %w in nomic_bert", has, ErrUnsupported)
	}
	return nil
}
