package arch

import (
	"cmp"
	"fmt"
	"math"

	"sandwich/runtime/gguf"
	"sandwich/runtime/model"
	"sandwich/runtime/model/hf"
	"sandwich/runtime/model/metadata"
	"sandwich/runtime/model/vocab"
)

func init() {
	Register(Architecture{Name: "gemma2", Decoder: gemma2, Vocabulary: gemmaVocabulary, Check: checkWindows,
		HF: []string{"gemma2"}, Knows: []string{"windows", "gelu"},
		ReadHF: func(h *hf.File, c *model.Config) error { return readGemmaHF(h, c, 2) },
		Read: func(m *metadata.Reader, c *model.Config) {
			if m.Has("attention.sliding_window") {
				m.Windows(c, 2)
			} else {
				c.Windows = model.Windows{Size: 4096, Period: 2}
			}
			m.Near(c)
			c.Scales = model.Scales{AttnCap: 50, LogitCap: 30} // the defaults of llama.cpp
			m.Caps(c)
			if c.Layers == 46 { // the 27B model
				c.Scales.Attn = 1 / math.Sqrt(float64(c.Hidden)/float64(c.Heads))
			}
		},
	})
}

// gemma2 writes Riviere et al., Gemma 2: Improving Open Language Models at a Practical Size, 2024:
// windows in every second layer, soft caps, norms on both sides of a block, GeGLU.
func gemma2(b *model.Builder) {
	far := b.Rope(model.Rope{Neox: true})
	near := b.Near(far)
	b.Embed(rootOfHidden(b.Config)) // X [T, hidden]
	for i := range b.Layers() {
		rope := far
		if b.Windows.Has(i) {
			rope = near
		}
		b.Norm("attn_norm")    // H [T, hidden]
		b.QKV(model.IfPresent) // Q [T, heads*headDim], K and V [T, kvHeads*headDim]
		b.Rotate(model.Rotation{Rope: rope})
		b.Attend(model.Attn{Scale: b.AttnScale(), Window: b.Windows.Of(i), Softcap: float32(b.Scales.AttnCap)})
		b.AttnOut() // Y [T, hidden]
		b.Residual(model.Residual{Scale: 1, Post: "post_attention_norm"})
		b.Norm("ffn_norm") // H [T, hidden]
		b.FFN(model.GeGLU) // Gate [T, ffn], Y [T, hidden]
		b.Residual(model.Residual{Scale: 1, Post: "post_ffw_norm"})
	}
	b.Norm("output_norm") // H [T, hidden]
	b.Head(1)             // Logits [wanted rows, vocab]
	b.Cap(b.Scales.LogitCap)
}

// rootOfHidden returns the factor of Gemma's embedding.
func rootOfHidden(c model.Config) float32 { return float32(math.Sqrt(float64(c.Hidden))) }

// gemmaVocabulary writes a SentencePiece vocabulary that begins with Gemma's special tokens.
func gemmaVocabulary(w *gguf.Writer, tokens int) { writeGemma(w, tokens, false) }

// writeGemma writes Gemma's vocabulary; ends says that every text gets an end token.
func writeGemma(w *gguf.Writer, tokens int, ends bool) {
	v := vocab.SPM{Special: []string{"<pad>", "<eos>", "<bos>", "<unk>", "<start_of_turn>", "<end_of_turn>"},
		Unknown: 3,
		BOS:     2, EOS: 1, Template: chatGemma, Ends: ends}
	for i := 0; tokens > 1<<16 && i < 99; i++ {
		v.Special = append(v.Special, fmt.Sprintf("<unused%d>", i))
	}
	v.Write(w, tokens)
	w.SetUint32("tokenizer.ggml.padding_token_id", 0)
	w.SetUint32("tokenizer.ggml.eot_token_id", 5)
	w.SetBool("tokenizer.ggml.add_space_prefix", false)
}

// readGemmaHF reads windows, soft caps and scale of Gemma's configurations, with Gemma's defaults.
// The last layer of each period has full attention.
func readGemmaHF(h *hf.File, c *model.Config, period int) error {
	var f struct {
		QueryScalar float64 `json:"query_pre_attn_scalar"`
		AttnCap     float64 `json:"attn_logit_softcapping"`
	}
	if err := h.Decode(&f); err != nil {
		return err
	}
	c.Windows, c.Tied = h.Windows(period), h.Tied == nil || *h.Tied
	c.Scales = model.Scales{AttnCap: f.AttnCap, LogitCap: h.LogitCap}
	if f.QueryScalar > 0 && f.QueryScalar != float64(c.HeadDim) {
		c.Scales.Attn = 1 / math.Sqrt(f.QueryScalar)
	}
	return nil
}

func init() {
	Register(Architecture{Name: "gemma3", Decoder: gemma3, Vocabulary: gemmaVocabulary, Check: checkMaybeWindows,
		HF: []string{"gemma3_text"}, Knows: []string{"windows", "gelu", "linear"}, Defaults: gemma3Defaults,
		ReadHF: readGemma3HF,
		Read: func(m *metadata.Reader, c *model.Config) {
			if m.Has("attention.sliding_window") { // else all layers have full attention
				m.Windows(c, 6)
			}
			c.Scales.LogitCap = m.PositiveOr("final_logit_softcapping", 0)
			c.Windows.Base = m.PositiveOr("rope.freq_base_swa", 10000)
			if c.Layers == 62 { // the 27B model
				c.Scales.Attn = 1 / math.Sqrt(float64(c.Hidden)/float64(c.Heads))
			}
		},
	})
}

// gemma3 writes Kamath et al., Gemma 3 Technical Report, 2025: gemma2 with norms of heads instead
// of soft caps, five windowed layers for each full one, and a rotation for each kind.
func gemma3(b *model.Builder) {
	far := b.Rope(model.Rope{Neox: true})
	near := b.Rope(model.Rope{Base: b.Windows.Base, Neox: true, Gain: b.RopeGain})
	b.Embed(rootOfHidden(b.Config)) // X [T, hidden]
	for i := range b.Layers() {
		rope := far
		if b.Windows.Has(i) {
			rope = near
		}
		b.Norm("attn_norm")    // H [T, hidden]
		b.QKV(model.IfPresent) // Q [T, heads*headDim], K and V [T, kvHeads*headDim]
		b.Rotate(model.Rotation{Rope: rope, QNorm: "attn_q_norm", KNorm: "attn_k_norm"})
		b.Attend(model.Attn{Scale: b.AttnScale(), Window: b.Windows.Of(i)})
		b.AttnOut() // Y [T, hidden]
		b.Residual(model.Residual{Scale: 1, Post: "post_attention_norm"})
		b.Norm("ffn_norm") // H [T, hidden]
		b.FFN(model.GeGLU) // Gate [T, ffn], Y [T, hidden]
		b.Residual(model.Residual{Scale: 1, Post: "post_ffw_norm"})
	}
	b.Norm("output_norm") // H [T, hidden]
	b.Head(1)             // Logits [wanted rows, vocab]
	b.Cap(b.Scales.LogitCap)
}

// gemma3Defaults has the fields that the published multimodal files of Gemma 3 leave out of their
// text part.
const gemma3Defaults = `{"vocab_size":262208,"hidden_size":2304,"intermediate_size":9216,"num_hidden_layers":26,
	"num_attention_heads":8,"num_key_value_heads":4,"head_dim":256,"hidden_activation":"gelu_pytorch_tanh",
	"max_position_embeddings":131072,"rms_norm_eps":1e-6,"rope_theta":1000000,"query_pre_attn_scalar":256,
	"sliding_window":4096}`

// readGemma3HF reads the configuration of Gemma 2, and the rotation base of windowed layers.
func readGemma3HF(h *hf.File, c *model.Config) error {
	var f struct {
		LocalTheta float64 `json:"rope_local_base_freq"`
	}
	if err := h.Decode(&f); err != nil {
		return err
	}
	if err := readGemmaHF(h, c, 6); err != nil {
		return err
	}
	c.Windows.Base = cmp.Or(f.LocalTheta, 10000)
	return nil
}

func init() {
	Register(Architecture{Name: "gemma-embedding", Decoder: gemma3, Vocabulary: gemmaEmbeddingVocabulary,
		Check: checkWindows,
		HF:    []string{hf.GemmaBidirectional}, Knows: []string{"windows", "gelu", "linear"},
		ReadHF: func(h *hf.File, c *model.Config) error {
			if err := readGemma3HF(h, c); err != nil {
				return err
			}
			c.Tied, c.Bidirectional = false, true
			return h.Require(map[string]int{"sliding_window": h.WindowSize()})
		},
		// Vera et al., EmbeddingGemma: Powerful and Lightweight Text Representations, 2025: gemma3
		// with bidirectional attention, also in windows.
		Read: func(m *metadata.Reader, c *model.Config) {
			c.Bidirectional = true
			m.Windows(c, 6)
			c.Windows.Base = m.PositiveOr("rope.freq_base_swa", 10000)
		}})
}

// gemmaEmbeddingVocabulary writes Gemma's vocabulary with an end token after each text.
func gemmaEmbeddingVocabulary(w *gguf.Writer, tokens int) { writeGemma(w, tokens, true) }

// chatGemma is a chat template similar to that of the family, for synthetic vocabularies.
const chatGemma = `{{ bos_token }}{% for message in messages %}<start_of_turn>{{ 'model' if message['role'] == 'assistant' else message['role'] }}
{{ message['content'] }}<end_of_turn>
{% endfor %}{% if add_generation_prompt %}<start_of_turn>model
{% endif %}`
