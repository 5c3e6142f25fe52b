package model

import (
	"fmt"

	"sandwich/runtime/gguf"
)

func init() {
	Register(Architecture{Name: "mistral3", Decoder: mistral3, Vocabulary: tekkenVocabulary,
		HF: []string{"ministral3"}, Knows: []string{"yarn"}, ReadHF: readMinistralHF,
		Read: func(m *Metadata, c *Config) {
			if c.Yarn != nil {
				c.Yarn.Fast = m.PositiveOr("rope.scaling.yarn_beta_fast", c.Yarn.Fast)
				c.Yarn.Slow = m.PositiveOr("rope.scaling.yarn_beta_slow", c.Yarn.Slow)
				c.Yarn.Log = m.notBelow0("rope.scaling.yarn_log_multiplier")
			}
			if m.hasFloat("attention.temperature_scale") {
				c.AttnTemperature = m.PositiveOr("attention.temperature_scale", 0)
				if c.Yarn == nil {
					c.AttnTemperatureLength = m.SizeOr("rope.scaling.original_context_length", 1<<26, c.Context)
				}
			}
		},
	})
}

// mistral3 writes the models of Mistral AI since 2025 (Ministral 3): llama with YaRN and an
// attention temperature that depends on the position.
func mistral3(b *Builder) {
	rope := b.Rope(Rope{})
	var temperature *AttnTemperature
	if b.AttnTemperature > 0 {
		temperature = &AttnTemperature{Scale: b.AttnTemperature, Length: b.AttnTemperatureLength}
		if b.Yarn != nil {
			temperature.Length = b.Yarn.Original
		}
	}
	b.Embed(1) // X [T, hidden]
	for range b.Layers() {
		b.Norm("attn_norm") // H [T, hidden]
		b.QKV(IfPresent)    // Q [T, heads*headDim], K and V [T, kvHeads*headDim]
		b.Rotate(Rotation{Rope: rope, AttnTemperature: temperature})
		b.Attend(Attn{Scale: b.HeadScale()})                 // Att [T, heads*headDim]
		b.AttnOutBias(IfPresent)                             // Y [T, hidden]
		b.Norm("ffn_norm")                                   // H [T, hidden]
		b.Feed(Feed{In: BufH, Act: SwiGLU, Bias: IfPresent}) // Gate [T, ffn], Y [T, hidden]
	}
	b.Norm("output_norm") // H [T, hidden]
	b.Head(1)             // Logits [wanted rows, vocab]
}

// tekkenVocabulary writes a byte-level BPE vocabulary with Mistral's special tokens.
func tekkenVocabulary(w *gguf.Writer, tokens int) {
	writeBPE(w, tokens, "tekken", chatMistral, []string{"<s>", "</s>", "[INST]", "[/INST]"}, 0, 1, true)
}

// readMinistralHF reads the attention temperature.
func readMinistralHF(h *HF, c *Config) error {
	if h.Rope == nil {
		return h.require(map[string]int{"rope_parameters": 0})
	}
	if c.AttnTemperature = h.Rope.AttnTemperature; !(c.AttnTemperature >= 0) {
		return fmt.Errorf("llama_4_scaling_beta is %v: it must not be negative", c.AttnTemperature)
	}
	return h.require(map[string]int{"head_dim": h.HeadDim, "num_key_value_heads": h.KVHeads})
}
