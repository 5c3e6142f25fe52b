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
	Register(Architecture{Name: "gemma4", Decoder: gemma4, Vocabulary: gemma4Vocabulary, Check: checkGemma4,
		HF: []string{"gemma4_text"}, Knows: []string{"windows", "gelu", "proportional"}, ReadHF: readGemma4HF,
		Read: func(m *metadata.Reader, c *model.Config) {
			m.Windows(c, 6)
			c.Scales.LogitCap = m.PositiveOr("final_logit_softcapping", 0)
			c.Windows.Base = m.PositiveOr("rope.freq_base_swa", 10000)
			c.Windows.HeadDim = m.SizeOr("attention.key_length_swa", 1<<12, c.HeadDim)
			if v := m.SizeOr("attention.value_length_swa", 1<<12, c.Windows.HeadDim); v != c.Windows.HeadDim {
				m.Fail("value heads of size %d with key heads of size %d are %w", v, c.Windows.HeadDim,
					model.ErrUnsupported)
			}
			c.Windows.RopeDim = m.SizeOr("rope.dimension_count_swa", 1<<12, c.Windows.HeadDim)
			c.SharedKV = m.CountOr("attention.shared_kv_layers", 1<<10)
			c.Inputs = m.CountOr("embedding_length_per_layer_input", 1<<16)
			c.NoValues = m.Tensors("attn_v.weight", c.Layers)
			for i, has := range c.NoValues {
				c.NoValues[i] = !has
			}
			if m.CountOr("expert_count", model.MaxExperts) > 0 {
				m.Experts(c)
				c.FusedExperts = m.Tensors("ffn_gate_up_exps.weight", 1)[0]
			}
		},
	})
}

// checkGemma4 returns an error for windows, shared keys and values, or experts that do not fit
// together.
func checkGemma4(c model.Config) error {
	if err := c.Windows.Check(c.Arch); err != nil {
		return err
	}
	for i := c.Layers - c.SharedKV; i < c.Layers; i++ {
		kvLayer := kvLayerOf(c, i)
		if kvLayer < 0 {
			return fmt.Errorf("layer %d shares keys and values of an earlier layer of its kind, but there is none", i)
		}
		if c.HeadsOf(kvLayer) != c.HeadsOf(i) {
			return fmt.Errorf("layer %d shares keys and values of layer %d, whose heads have other sizes", i, kvLayer)
		}
	}
	return checkMaybe(c)
}

// kvLayerOf returns the layer whose keys and values a layer reads: itself, or the last layer of its
// kind that has some; -1 if there is none.
func kvLayerOf(c model.Config, layer int) int {
	own := c.Layers - c.SharedKV
	if layer < own {
		return layer
	}
	for own--; own >= 0 && c.Windows.Has(own) != c.Windows.Has(layer); own-- {
	}
	return own
}

// gemma4 writes Google: Gemma 4, 2026: gemma3 with another head size in windowed layers, normalized
// values, which some layers take from the keys, and last layers that share keys and values of
// earlier layers. Small models have an embedding per layer (Gemma 3n, 2025); large ones have
// experts in addition to the feed-forward.
func gemma4(b *model.Builder) {
	far := b.Rope(model.Rope{Neox: true})
	far.Factors.Data = proportional(far.Dim)
	near := b.Rope(model.Rope{Base: b.Windows.Base, Neox: true, Dim: b.Windows.RopeDim, Gain: b.RopeGain})
	b.Embed(rootOfHidden(b.Config)) // X [T, hidden]
	if b.Inputs > 0 {
		layerInputs(b) // Inputs [T, layers*inputs]
	}
	for i := range b.Layers() {
		rope, kvLayer, shares := far, 0, kvLayerOf(b.Config, i) != i
		if b.Windows.Has(i) {
			rope = near
		}
		if shares {
			kvLayer = kvLayerOf(b.Config, i) + 1
		}
		noV := b.NoValues != nil && b.NoValues[i]
		b.Norm("attn_norm") // H [T, hidden]
		b.Project(model.Projection{In: model.BufH, Whole: true, NoV: noV,
			NoKV: shares}) // Q [T, heads*headDim], K and V
		b.Rotate(model.Rotation{Rope: rope, QNorm: "attn_q_norm", KNorm: "attn_k_norm", VNorm: true, KeysAsValues: noV,
			KVLayer: kvLayer})
		b.Attend(model.Attn{Scale: 1, Window: b.Windows.Of(i)}) // Att [T, heads*headDim]
		b.AttnOut()                                             // Y [T, hidden]
		b.Residual(model.Residual{Scale: 1, Post: "post_attention_norm"})
		b.Norm("ffn_norm") // H [T, hidden]
		b.Feed(model.Feed{In: model.BufH, Act: model.GeGLU,
			Shared: b.Experts.Count > 0}) // Gate [T, ffn], Y [T, hidden]
		if b.Experts.Count > 0 {
			gemmaExperts(b) // Y [T, hidden]
		}
		last := model.Residual{Scale: 1, Post: "post_ffw_norm"}
		if b.Inputs > 0 {
			b.Residual(last)
			b.Sum("ffn_sum")
			addLayerInput(b) // Y [T, hidden]
			last.Post = "post_norm"
		}
		last.Gain = "layer_output_scale"
		b.Residual(last)
	}
	b.Norm("output_norm") // H [T, hidden]
	b.Head(1)             // Logits [wanted rows, vocab]
	b.Cap(b.Scales.LogitCap)
}

// proportional returns the divisors of the angles in full-attention layers: a quarter of the dim/2
// pairs rotates, by the angles of a full rotation.
func proportional(dim int) []float32 {
	const still = 1e30 // as converters write it
	out := make([]float32, dim/2)
	for i := range out {
		if out[i] = 1; i >= dim/8 {
			out[i] = still
		}
	}
	return out
}

// layerInputs computes the embeddings per layer from X and the tokens: Inputs [T, layers*inputs].
func layerInputs(b *model.Builder) {
	n := b.Config.Layers * b.Inputs
	b.MatMul("inputs", model.BufX, model.Product{Role: model.SharedRole + "inputs", Tensor: "per_layer_model_proj",
		N: n, K: b.Hidden,
		Out: model.BufInputs})
	b.Op(model.OpInputs, "inputs", model.Op{Scale: float32(1 / math.Sqrt(float64(b.Hidden))),
		Norm:    b.Vector("per_layer_proj_norm.weight", b.Inputs, model.Always),
		EmbedOp: model.EmbedOp{Table: &model.Table{Name: "per_layer_token_embd.weight", N: n}}})
}

// addLayerInput adds the projection of the layer's own embedding: Input [T, inputs], Y [T, hidden].
func addLayerInput(b *model.Builder) {
	b.MatMul("input_gate", model.BufX, model.Product{Role: model.SharedRole + "gate", Tensor: "inp_gate", N: b.Inputs,
		K:   b.Hidden,
		Out: model.BufInput})
	b.Op(model.OpGate, "input", model.Op{In: model.BufInputs, Act: model.GeGLU, Outs: []model.Buf{model.BufInput},
		N: b.Inputs})
	b.MatMul("input_proj", model.BufInput, model.Product{Role: model.SharedRole + "down", Tensor: "proj", N: b.Hidden,
		K:   b.Inputs,
		Out: model.BufY})
}

// gemmaExperts adds the output of the experts to that of the feed-forward in Y. Both are normalized
// first, and the router reads the residual stream through its own norm.
func gemmaExperts(b *model.Builder) {
	b.RowNorm("post_ffw_norm_1", model.BufY, b.Hidden)
	b.HoldY() // Y is not complete yet
	router := b.Vector("ffn_gate_inp.scale", b.Hidden, model.Always)
	router.Times = float32(1 / math.Sqrt(float64(b.Hidden)))
	m := model.Mixture{Act: model.GeGLU, Into: model.BufH, Router: model.Router{Norm: true, Scale: 1}}
	b.Op(model.OpNorm, "router_norm", model.Op{Norm: router}) // H [T, hidden]
	b.Route(m)                                                // Router [T, experts]
	b.Norm("pre_ffw_norm_2")                                  // H [T, hidden]
	b.ApplyExperts(m)                                         // H [T, hidden]
	b.Op(model.OpRowNorm, "post_ffw_norm_2", model.Op{In: model.BufH, Outs: []model.Buf{model.BufY}, Accumulate: true,
		Norm: b.Vector("post_ffw_norm_2.weight", b.Hidden, model.Always)}) // Y [T, hidden]
	b.WroteY()
}

// gemma4Vocabulary writes Gemma's vocabulary with merge rules instead of scores.
func gemma4Vocabulary(w *gguf.Writer, tokens int) {
	vocab.SPM{Special: []string{"<pad>", "<eos>", "<bos>", "<unk>", "<|turn>", "<turn|>"}, Unknown: 3, BOS: 2, EOS: 1,
		Template: chatGemma4, Merged: true}.Write(w, tokens)
	w.SetUint32("tokenizer.ggml.padding_token_id", 0)
	w.SetUint32("tokenizer.ggml.eot_token_id", 5)
	w.SetBool("tokenizer.ggml.add_space_prefix", false)
}

// readGemma4HF reads the sizes of windowed and full layers. The last layer always has full
// attention.
func readGemma4HF(h *hf.File, c *model.Config) error {
	var f struct {
		FarHeadDim int      `json:"global_head_dim"`
		FarKVHeads int      `json:"num_global_key_value_heads"`
		Inputs     hf.Count `json:"hidden_size_per_layer_input"`
		InputVocab int      `json:"vocab_size_per_layer_input"`
		KeysValues bool     `json:"attention_k_eq_v"`
		SharedKV   int      `json:"num_kv_shared_layers"`
		HasExperts bool     `json:"enable_moe_block"`
		DoubleWide bool     `json:"use_double_wide_mlp"`
		TopExperts int      `json:"top_k_experts"`
	}
	if err := h.Decode(&f); err != nil {
		return err
	}
	if err := h.Require(map[string]int{"num_key_value_heads": h.KVHeads}); err != nil {
		return err
	}
	near, err := h.LayersOfKind("sliding_attention", "full_attention")
	switch {
	case err != nil:
		return err
	case h.Layers < 1 || h.Layers > 1<<10:
		return nil // Check returns the error
	case string(h.UseBidirectional) == `"all"`:
		return fmt.Errorf(`use_bidirectional_attention "all" is %w`, model.ErrUnsupported)
	case near == nil:
		near = model.NotLast(h.Layers, 6)
	}
	near[h.Layers-1] = false
	c.HeadDim, c.Tied = cmp.Or(f.FarHeadDim, 512), h.Tied == nil || *h.Tied
	c.Scales = model.Scales{LogitCap: h.LogitCap}
	dim := cmp.Or(h.HeadDim, 256)
	c.Windows = model.Windows{Size: cmp.Or(h.WindowSize(), 512), Layers: near, HeadDim: dim, RopeDim: dim}
	if err := readGemma4Rope(h, c); err != nil {
		return err
	}
	if f.KeysValues {
		for _, has := range near {
			c.NoValues = append(c.NoValues, !has)
		}
	}
	if far := f.FarKVHeads; f.KeysValues && far > 0 {
		for _, has := range near {
			heads := far
			if has {
				heads = h.KVHeads
			}
			c.KVHeadsOf = append(c.KVHeadsOf, heads)
		}
		c.KVHeads = max(c.KVHeads, far)
	}
	c.SharedKV = f.SharedKV
	if f.DoubleWide && f.SharedKV > 0 {
		c.FFNOf, c.FFN = model.Widths(h.Layers-f.SharedKV, h.FFN, h.Layers, 2*h.FFN), 2*h.FFN
	}
	c.Inputs = f.Inputs.Or(256)
	if n := cmp.Or(f.InputVocab, 262144); c.Inputs > 0 && n != h.Vocab {
		return fmt.Errorf("vocab_size_per_layer_input %d with vocab_size %d is %w", n, h.Vocab, model.ErrUnsupported)
	}
	if f.HasExperts {
		c.Experts, c.FusedExperts = model.Experts{Count: h.Experts, Used: f.TopExperts, FFN: h.ExpertFFN}, true
	}
	return nil
}

// readGemma4Rope reads the rotations of windowed and full layers. A partial rotation of full layers
// (proportional) needs no size, since GGUF files store it as factors of the angles.
func readGemma4Rope(h *hf.File, c *model.Config) error {
	if h.Rope == nil {
		h.Rope = &hf.Rope{Far: &hf.Rope{Type: "proportional", Theta: 1e6}, Near: &hf.Rope{Theta: 1e4}}
	}
	near := h.Rope.Near
	if h.Rope.Far == nil || near == nil {
		return h.Require(map[string]int{"rope_parameters of full_attention and sliding_attention": 0})
	}
	if kind := near.Kind(); kind != "" && kind != "default" {
		return fmt.Errorf("RoPE scaling %q in layers with a window is %w", kind, model.ErrUnsupported)
	}
	c.Windows.Base = cmp.Or(near.Theta, 1e4)
	return nil
}

// chatGemma4 is a chat template similar to that of the family, for synthetic vocabularies.
const chatGemma4 = `{{ bos_token }}{% for message in messages %}<|turn>{{ 'model' if message['role'] == 'assistant' else message['role'] }}
{{ message['content'] }}<turn|>
{% endfor %}{% if add_generation_prompt %}<|turn>model
{% endif %}`
