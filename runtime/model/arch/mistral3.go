package arch

import (
	"fmt"

	"sandwich/runtime/gguf"
	"sandwich/runtime/model"
	"sandwich/runtime/model/hf"
	"sandwich/runtime/model/metadata"
	"sandwich/runtime/model/vocab"
)

func init() {
	Register(Architecture{Name: "mistral3", Decoder: mistral3, Vocabulary: tekkenVocabulary,
		HF: []string{"ministral3"}, Knows: []string{"yarn"}, ReadHF: readMinistralHF,
		Read: func(m *metadata.Reader, c *model.Config) {
			if c.Yarn != nil {
				c.Yarn.Fast = m.PositiveOr("rope.scaling.yarn_beta_fast", c.Yarn.Fast)
				c.Yarn.Slow = m.PositiveOr("rope.scaling.yarn_beta_slow", c.Yarn.Slow)
				c.Yarn.Log = m.NotBelow0("rope.scaling.yarn_log_multiplier")
			}
			if m.HasFloat("attention.temperature_scale") {
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
func mistral3(b *model.Builder) {
	rope := b.Rope(model.Rope{})
	var temperature *model.AttnTemperature
	if b.AttnTemperature > 0 {
		temperature = &model.AttnTemperature{Scale: b.AttnTemperature, Length: b.AttnTemperatureLength}
		if b.Yarn != nil {
			temperature.Length = b.Yarn.Original
		}
	}
	b.Embed(1) // X [T, hidden]
	for range b.Layers() {
		b.Norm("attn_norm")    // H [T, hidden]
		b.QKV(model.IfPresent) // Q [T, heads*headDim], K and V [T, kvHeads*headDim]
		b.Rotate(model.Rotation{Rope: rope, AttnTemperature: temperature})
		b.Attend(model.Attn{Scale: b.HeadScale()})                                   // Att [T, heads*headDim]
		b.AttnOutBias(model.IfPresent)                                               // Y [T, hidden]
		b.Norm("ffn_norm")                                                           // H [T, hidden]
		b.Feed(model.Feed{In: model.BufH, Act: model.SwiGLU, Bias: model.IfPresent}) // Gate [T, ffn], Y [T, hidden]
	}
	b.Norm("output_norm") // H [T, hidden]
	b.Head(1)             // Logits [wanted rows, vocab]
}

// tekkenVocabulary writes a byte-level BPE vocabulary with Mistral's special tokens.
func tekkenVocabulary(w *gguf.Writer, tokens int) {
	vocab.WriteBPE(w, tokens, "tekken", chatMistral, []string{"<s>", "</s>", "[INST]", "[/INST]"}, 0, 1, true)
}

// readMinistralHF reads the attention temperature.
func readMinistralHF(h *hf.File, c *model.Config) error {
	if h.Rope == nil {
		return h.Require(map[string]int{"rope_parameters": 0})
	}
	if c.AttnTemperature = h.Rope.AttnTemperature; !(c.AttnTemperature >= 0) {
		return fmt.Errorf("llama_4_scaling_beta is %v: it must not be negative", c.AttnTemperature)
	}
	return h.Require(map[string]int{"head_dim": h.HeadDim, "num_key_value_heads": h.KVHeads})
}

// chatMistral is a chat template similar to that of the family, for synthetic vocabularies.
const chatMistral = `{{ bos_token }}{% for message in messages %}{% if message['role'] == 'assistant' %}{{ message['content'] }}</s>{% else %}[INST]{{ message['content'] }}[/INST]{% endif %}{% endfor %}`
