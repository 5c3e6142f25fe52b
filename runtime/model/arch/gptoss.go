package arch

import (
	"sandwich/runtime/gguf"
	"sandwich/runtime/model"
	"sandwich/runtime/model/hf"
	"sandwich/runtime/model/metadata"
	"sandwich/runtime/model/vocab"
)

func init() {
	Register(Architecture{Name: "gpt-oss", Decoder: gptOSS, Vocabulary: gptOSSVocabulary,
		HF: []string{"gpt_oss"}, Knows: []string{"windows", "biases", "yarn"},
		ReadHF: func(h *hf.File, c *model.Config) error {
			c.Windows = h.Windows(2)
			c.Experts = model.Experts{Count: h.LocalExperts, Used: h.ExpertsUsed, FFN: c.FFN}
			return nil
		},
		Read: func(m *metadata.Reader, c *model.Config) {
			m.Windows(c, 2)
			m.Near(c)
			m.Experts(c)
		},
		Check: func(c model.Config) error {
			if err := c.Windows.Check(c.Arch); err != nil {
				return err
			}
			return c.Experts.Check()
		},
	})
}

// gptOSS writes OpenAI: gpt-oss-120b and gpt-oss-20b Model Card, 2025: experts with clamped SwiGLU,
// windows in every second layer, an attention sink per head, and biases in all products.
func gptOSS(b *model.Builder) {
	far := b.Rope(model.Rope{Neox: true})
	near := b.Near(far)
	b.Embed(1) // X [T, hidden]
	for i := range b.Layers() {
		rope := far
		if b.Windows.Has(i) {
			rope = near
		}
		b.Norm("attn_norm")  // H [T, hidden]
		b.QKV(model.Usually) // Q [T, heads*headDim], K and V [T, kvHeads*headDim]
		b.Rotate(model.Rotation{Rope: rope})
		b.AttendSinks(model.Attn{Scale: b.HeadScale(), Window: b.Windows.Of(i)}, "attn_sinks")
		b.AttnOutBias(model.Always)   // Y [T, hidden]
		b.Norm("post_attention_norm") // H [T, hidden]
		b.Mix(model.Mixture{Act: model.ClampedSwiGLU, Router: model.Router{Norm: true, Scale: 1},
			Bias: model.Always}) // Y [T, hidden]
	}
	b.Norm("output_norm") // H [T, hidden]
	b.Head(1)             // Logits [wanted rows, vocab]
}

// gptOSSVocabulary writes a byte-level BPE vocabulary with the special tokens of the harmony
// format.
func gptOSSVocabulary(w *gguf.Writer, tokens int) {
	special := []string{"<|startoftext|>", "<|endoftext|>", "<|return|>", "<|constrain|>", "<|channel|>", "<|start|>",
		"<|end|>", "<|message|>", "<|call|>"}
	vocab.WriteBPE(w, tokens, "gpt-4o", chatHarmony, special, 0, 2, false)
}

// chatHarmony is a chat template similar to that of the family, for synthetic vocabularies.
const chatHarmony = `{% if tools %}<|start|>developer<|message|># Tools

namespace functions {
{% for tool in tools %}// {{ tool.function.description }}
type {{ tool.function.name }} = (_: {{ tool.function.parameters | tojson }}) => any;
{% endfor %}}<|end|>{% endif %}{% set last = namespace(name='') %}{% for message in messages %}{% if message['role'] == 'assistant' and message['tool_calls'] %}{% set call = message['tool_calls'][0].function %}{% set last.name = call.name %}<|start|>assistant<|channel|>commentary to=functions.{{ call.name }} <|constrain|>json<|message|>{{ call.arguments | tojson }}<|call|>{% elif message['role'] == 'assistant' %}<|start|>assistant<|channel|>final<|message|>{{ message['content'] }}<|end|>{% elif message['role'] == 'tool' %}<|start|>functions.{{ last.name }} to=assistant<|channel|>commentary<|message|>{{ message['content'] }}<|end|>{% else %}<|start|>{{ message['role'] }}<|message|>{{ message['content'] }}<|end|>{% endif %}{% endfor %}{% if add_generation_prompt %}<|start|>assistant{% endif %}`
