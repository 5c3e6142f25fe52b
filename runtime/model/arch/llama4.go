package arch

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"sandwich/runtime/gguf"
	"sandwich/runtime/model"
	"sandwich/runtime/model/hf"
	"sandwich/runtime/model/metadata"
	"sandwich/runtime/model/vocab"
)

func init() {
	Register(Architecture{Name: "llama4", Decoder: llama4, Vocabulary: llama4Vocabulary, Check: checkExperts,
		HF: []string{"llama4_text"}, ReadHF: readLlama4HF,
		Read: func(m *metadata.Reader, c *model.Config) {
			m.Experts(c)
			c.Experts.Every = m.Size("interleave_moe_layer_step", 1<<10)
			c.Experts.Shared = c.Experts.FFN
			if n, ok := m.Uint("attention.sliding_window"); !ok || n > 0 {
				c.Windows.Chunk = Llama4Chunk
				m.Near(c)
			}
		},
	})
}

// Values of the published models that files do not contain.
const (
	Llama4Chunk       = 8192 // positions of an attention chunk, and of a step of the temperature
	llama4Temperature = 0.1
	llama4Maverick    = 128 // experts of the one model whose heads are not normalized
	llama4FullPeriod  = 4   // the last of so many layers has full attention
)

// llama4 writes Meta: Llama 4, 2025: llama with attention in chunks, every fourth layer with full
// attention and without positions, and in some or all layers one routed and one shared expert per
// token.
func llama4(b *model.Builder) {
	rope := b.Near(b.Rope(model.Rope{}))
	plain := b.Experts.Count != llama4Maverick
	if plain { // the norm follows the rotation in the original model, so the gain must not apply
		rope.Gain = 1
	}
	far := &model.AttnTemperature{Scale: llama4Temperature, Length: Llama4Chunk, Offset: 1}
	b.Embed(1) // X [T, hidden]
	for i := range b.Layers() {
		near := b.Windows.Chunk == 0 || i%llama4FullPeriod != llama4FullPeriod-1
		r, a := model.Rotation{AttnTemperature: far}, model.Attn{Scale: b.HeadScale()}
		if near {
			r = model.Rotation{Rope: rope, Plain: plain}
		}
		if near && b.Windows.Chunk > 0 {
			a.Store = fmt.Sprintf("chunks of %d", b.Windows.Chunk)
		}
		b.Norm("attn_norm")    // H [T, hidden]
		b.QKV(model.IfPresent) // Q [T, heads*headDim], K and V [T, kvHeads*headDim]
		b.Rotate(r)
		b.Attend(a)          // Att [T, heads*headDim]
		b.AttnOut()          // Y [T, hidden]
		b.Norm("ffn_norm")   // H [T, hidden]
		if b.Experts.In(i) { // Y [T, hidden]
			b.Shared(model.SwiGLU)
			b.Mix(model.Mixture{Act: model.SwiGLU, Router: model.Router{Score: model.Sigmoid, Scale: 1,
				ScaleInput: true}, Accumulate: true})
		} else {
			b.Feed(model.Feed{In: model.BufH, Act: model.SwiGLU, Shared: true})
		}
	}
	b.Norm("output_norm") // H [T, hidden]
	b.Head(1)             // Logits [wanted rows, vocab]
}

// llama4Vocabulary writes a byte-level BPE vocabulary with Llama 4's special tokens.
func llama4Vocabulary(w *gguf.Writer, tokens int) {
	special := []string{"<|begin_of_text|>", "<|end_of_text|>", "<|header_start|>", "<|header_end|>", "<|eom|>",
		"<|eot|>"}
	vocab.WriteBPE(w, tokens, "llama4", chatLlama4, special, 0, 5, true)
}

// readLlama4HF reads the sizes of experts and dense layers. It returns an error for values that the
// published models do not have, since their GGUF files cannot express them.
func readLlama4HF(h *hf.File, c *model.Config) error {
	var f struct {
		DenseFFN          int             `json:"intermediate_size_mlp"`
		ExpertEvery       int             `json:"interleave_moe_layer_step"`
		ExpertsIn         []int           `json:"moe_layers"`
		HeadNorms         *bool           `json:"use_qk_norm"`
		Rotated           []int           `json:"no_rope_layers"`
		PlainEvery        int             `json:"no_rope_layer_interval"`
		ChunkSize         hf.Count        `json:"attention_chunk_size"`
		TemperatureTuning json.RawMessage `json:"attn_temperature_tuning"`
		TemperatureFloor  int             `json:"floor_scale"`
		TemperatureScale  float64         `json:"attn_scale"`
	}
	if err := h.Decode(&f); err != nil {
		return err
	}
	if err := h.Require(map[string]int{"head_dim": h.HeadDim, "num_key_value_heads": h.KVHeads,
		"intermediate_size_mlp": f.DenseFFN}); err != nil {
		return err
	}
	every := cmp.Or(f.ExpertEvery, 1)
	c.FFN = f.DenseFFN
	c.Experts = model.Experts{Count: h.LocalExperts, Used: h.ExpertsUsed, FFN: h.FFN, Shared: h.FFN, Every: every}
	c.Windows.Chunk = Llama4Chunk
	if h.Rope == nil && h.RopeTheta == 0 {
		h.RopeTheta, c.RopeBase = 5e5, 5e5
	}
	norms := f.HeadNorms == nil || *f.HeadNorms
	tuning := string(f.TemperatureTuning)
	switch {
	case every < 1:
		return fmt.Errorf("interleave_moe_layer_step is %d, not a positive number", every)
	case f.ChunkSize.Or(Llama4Chunk) != Llama4Chunk:
		return fmt.Errorf("attention_chunk_size %d is %w: it must be %d", f.ChunkSize.Value, model.ErrUnsupported,
			Llama4Chunk)
	case cmp.Or(f.PlainEvery, llama4FullPeriod) != llama4FullPeriod ||
		!zeroAtPeriod(f.Rotated, llama4FullPeriod, h.Layers):
		return fmt.Errorf("no_rope_layers other than every %dth are %w", llama4FullPeriod, model.ErrUnsupported)
	case norms == (h.LocalExperts == llama4Maverick):
		return fmt.Errorf("use_qk_norm %v with %d experts is %w: in GGUF files the one determines the other", norms,
			h.LocalExperts, model.ErrUnsupported)
	case tuning == "false" || tuning == "0" || tuning == "null" ||
		cmp.Or(f.TemperatureFloor, Llama4Chunk) != Llama4Chunk ||
		cmp.Or(f.TemperatureScale, llama4Temperature) != llama4Temperature:
		return fmt.Errorf("attn_temperature_tuning %s with a floor_scale of %d and an attn_scale of %v is %w", tuning,
			f.TemperatureFloor, f.TemperatureScale, model.ErrUnsupported)
	}
	for i := range f.ExpertsIn {
		if len(f.ExpertsIn) != h.Layers/every || f.ExpertsIn[i] != every*(i+1)-1 {
			return fmt.Errorf("moe_layers other than every %dth are %w", every, model.ErrUnsupported)
		}
	}
	layers, err := h.LayersOfKind("full_attention", "chunked_attention")
	if err == nil && layers != nil && !slices.Equal(layers, model.LastOf(h.Layers, llama4FullPeriod)) {
		err = fmt.Errorf("layer_types other than full_attention in every %dth are %w", llama4FullPeriod,
			model.ErrUnsupported)
	}
	return err
}

// zeroAtPeriod reports whether a list with an entry per layer has zeros exactly at the last place
// of each period. An empty list is the default, which has.
func zeroAtPeriod(list []int, period, layers int) bool {
	for i, one := range list {
		if (one == 0) != (i%period == period-1) {
			return false
		}
	}
	return len(list) == 0 || len(list) >= layers
}

// chatLlama4 is a chat template similar to that of the family, for synthetic vocabularies.
const chatLlama4 = `{% for message in messages %}{% if loop.first %}{{ bos_token }}{% endif %}<|header_start|>{{ message['role'] }}<|header_end|>

{{ message['content'] }}<|eot|>{% endfor %}{% if add_generation_prompt %}<|header_start|>assistant<|header_end|>

{% endif %}`
