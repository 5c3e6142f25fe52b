package arch

import (
	"cmp"
	"fmt"
	"math"

	"sandwich/plans"
	"sandwich/runtime/gguf"
	"sandwich/runtime/model"
	"sandwich/runtime/model/hf"
	"sandwich/runtime/model/metadata"
	"sandwich/runtime/model/vocab"
)

func init() {
	Register(Architecture{Name: "deepseek2", Decoder: deepseek2, Vocabulary: deepseekVocabulary,
		HF: []string{"deepseek_v2", "deepseek_v3"}, Knows: []string{"yarn"}, ReadHF: readDeepseekHF,
		Read: func(m *metadata.Reader, c *model.Config) {
			readLatent(m, c)
			m.Experts(c)
			c.Experts.Dense = m.CountOr("leading_dense_block_count", 1<<10)
			c.Experts.Shared = c.Experts.FFN * m.CountOr("expert_shared_count", 1<<8)
			c.Gating = readGating(m)
			m.SkipPredictionLayers(c)
			if m.HasFloat("attention.temperature_scale") {
				m.Fail("%s (attention temperature by position) is %w in a deepseek2 model",
					m.Key("attention.temperature_scale"), model.ErrUnsupported)
			}
			if c.Yarn != nil {
				c.Yarn.Log = m.NotBelow0("rope.scaling.yarn_log_multiplier") / metadata.DeepseekLog
			}
		},
		Check: func(c model.Config) error {
			if err := c.Latent.Check(c); err != nil {
				return err
			}
			if g, e := c.Gating, c.Experts; g.Groups > 1 && (e.Count%g.Groups != 0 || g.GroupsUsed > g.Groups ||
				g.GroupsUsed*(e.Count/g.Groups) < e.Used) {
				return fmt.Errorf("%d of %d experts cannot be chosen from %d of %d groups", e.Used, e.Count,
					g.GroupsUsed, g.Groups)
			}
			return c.Experts.Check()
		},
	})
}

// readLatent reads the sizes of latent attention.
func readLatent(m *metadata.Reader, c *model.Config) {
	c.RopeDim = m.SizeOr("rope.dimension_count", 1<<12, c.RotatedDims())
	l := model.Latent{Q: m.CountOr("attention.q_lora_rank", 1<<14), KV: m.Size("attention.kv_lora_rank", 1<<14),
		Split: m.Has("attention.key_length_mla")}
	if l.Split {
		l.Key, l.Value = m.Size("attention.key_length_mla", 1<<12), m.Size("attention.value_length_mla", 1<<12)
		c.HeadDim, c.KVHeads = l.KV+c.RotatedDims(), 1
	} else {
		l.Key, l.Value = m.Size("attention.key_length", 1<<12), m.Size("attention.value_length", 1<<12)
		c.HeadDim, c.KVHeads = max(l.Key, l.Value), c.Heads
	}
	c.Latent = l
}

// readGating reads how the router scores and chooses experts.
func readGating(m *metadata.Reader) model.Router {
	r := model.Router{Scale: float32(m.PositiveOr("expert_weights_scale", 1)),
		Groups: m.CountOr("expert_group_count", model.MaxExperts), GroupsUsed: m.CountOr("expert_group_used_count",
			model.MaxExperts)}
	const sigmoid = 2
	switch kind := m.CountOr("expert_gating_func", 16); kind {
	case 0, 1:
	case sigmoid:
		r.Score = model.Sigmoid
	default:
		m.Fail("%s %d is %w: it must be 1 (softmax) or 2 (sigmoid)", m.Key("expert_gating_func"), kind,
			model.ErrUnsupported)
	}
	r.Norm, _ = m.Bool("expert_weights_norm")
	return r
}

// deepseek2 writes DeepSeek-V2 (2024) and V3 (2024): latent attention, and routed experts with one
// or more shared experts in all layers but the first.
func deepseek2(b *model.Builder) {
	rope, scale := latentRope(b)
	b.Embed(1) // X [T, hidden]
	for i := range b.Layers() {
		b.Norm("attn_norm")                // H [T, hidden]
		latentQKV(b, rope)                 // Q [T, heads*headDim], K and V in the cache
		b.Attend(model.Attn{Scale: scale}) // Att [T, heads*headDim]
		latentOut(b)                       // Y [T, hidden]
		b.Norm("ffn_norm")                 // H [T, hidden]
		if !b.Experts.In(i) {
			b.Feed(model.Feed{In: model.BufH, Act: model.SwiGLU, Shared: true}) // Shared [T, ffn], Y [T, hidden]
			continue
		}
		if b.Experts.Shared > 0 {
			b.Shared(model.SwiGLU) // Shared [T, shared ffn], Y [T, hidden]
		}
		b.Mix(model.Mixture{Act: model.SwiGLU, Router: biasedRouter(b, model.IfPresent),
			Accumulate: b.Experts.Shared > 0})
	}
	b.Norm("output_norm") // H [T, hidden]
	b.Head(1)             // Logits [wanted rows, vocab]
}

// biasedRouter returns the router of the file, with a bias on the scores by which experts are
// chosen.
func biasedRouter(b *model.Builder, bias model.Need) model.Router {
	router := b.Gating
	router.Scale = cmp.Or(router.Scale, 1)
	router.Bias = b.Vector("exp_probs_b.bias", b.Experts.Count, bias)
	return router
}

// latentRope returns the rotation and the scale of attention scores. YaRN's magnitude applies to
// the scale, squared for queries and keys; the rotation has it only if the file gives no logarithm
// multiplier.
func latentRope(b *model.Builder) (*model.Rope, float32) {
	r := b.Rope(model.Rope{})
	r.Gain = cmp.Or(b.RopeGain, 1)
	magnitude := r.Gain
	if b.Yarn != nil {
		if b.Yarn.Log == 0 {
			r.Gain *= b.Yarn.Magnitude(1)
		}
		magnitude = r.Gain * b.Yarn.Magnitude(b.Yarn.Log)
	}
	return r, float32(magnitude * magnitude / math.Sqrt(float64(b.Latent.Key)))
}

// latentQKV reads H [T, hidden] and writes LatentQ [T, latent], LatentKV [T, latent + rotated],
// Full [T, heads*key], then Q [T, heads*headDim] and the cache. If the file has matrices per head,
// queries are multiplied by those of the keys, so that all heads share the latent row as key and
// value in both phases (section 2.1.2); else each head has its own keys and values.
func latentQKV(b *model.Builder, rope *model.Rope) {
	l, whole := b.Latent, plans.RoleWhole
	key, rotated := l.Key, b.RotatedDims()
	kv := model.Product{Role: whole + "kv_a", Tensor: "attn_kv_a_mqa", N: l.KV + rotated, K: b.Hidden,
		Out: model.BufLatentKV}
	if l.Q > 0 {
		b.MatMul("latent", model.BufH, model.Product{Role: whole + "q_a", Tensor: "attn_q_a", N: l.Q, K: b.Hidden,
			Out: model.BufLatentQ},
			kv)
		b.RowNorm("attn_q_a_norm", model.BufLatentQ, l.Q)
		b.MatMul("q", model.BufLatentQ, model.Product{Role: whole + "q", Tensor: "attn_q_b", N: b.Heads * key, K: l.Q,
			Out: model.BufFull})
	} else {
		b.MatMul("latent", model.BufH, model.Product{Role: whole + "q", Tensor: "attn_q", N: b.Heads * key, K: b.Hidden,
			Out: model.BufFull},
			kv)
	}
	b.RowNorm("attn_kv_a_norm", model.BufLatentKV, l.KV)
	if l.Split {
		b.PerHead("k_b", model.BufFull, model.BufQ, key, b.LayerHeads.Dim, key-rotated, l.KV)
	} else {
		b.MatMul("kv_b", model.BufLatentKV, model.Product{Role: whole + "kv_b", Tensor: "attn_kv_b",
			N: b.Heads * (key - rotated + l.Value),
			K: l.KV, Out: model.BufKeyVal})
	}
	b.RotateLatent(rope)
}

// latentOut reads Att [T, heads*headDim] and writes Full [T, heads*value] and Y [T, hidden].
func latentOut(b *model.Builder) {
	l := b.Latent
	if l.Split {
		b.PerHead("v_b", model.BufAtt, model.BufFull, b.LayerHeads.Dim, l.Value, l.KV, l.Value)
	} else {
		b.Op(model.OpHeads, "values", model.Op{In: model.BufAtt, Outs: []model.Buf{model.BufFull}, Heads: b.LayerHeads,
			HeadsOp: model.HeadsOp{InStep: b.LayerHeads.Dim, OutStep: l.Value}, N: l.Value})
	}
	b.MatMul("o", model.BufFull, model.Product{Role: plans.RoleWhole + "o", Tensor: "attn_output", N: b.Hidden,
		K:   b.Heads * l.Value,
		Out: model.BufY})
}

// deepseekVocabulary writes a byte-level BPE vocabulary with DeepSeek's special tokens.
func deepseekVocabulary(w *gguf.Writer, tokens int) {
	special := []string{"<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>", "<｜User｜>", "<｜Assistant｜>"}
	vocab.WriteBPE(w, tokens, "deepseek-v3", chatDeepSeek, special, 0, 1, true)
}

// readDeepseekHF reads the sizes of latent attention, with matrices per head, and of the experts.
func readDeepseekHF(h *hf.File, c *model.Config) error {
	var f struct {
		LatentQ     *int   `json:"q_lora_rank"`
		LatentKV    int    `json:"kv_lora_rank"`
		KeyRest     int    `json:"qk_nope_head_dim"`
		KeyRotated  int    `json:"qk_rope_head_dim"`
		ValueDim    int    `json:"v_head_dim"`
		Routed      int    `json:"n_routed_experts"`
		SharedCount int    `json:"n_shared_experts"`
		DenseFirst  int    `json:"first_k_dense_replace"`
		Scoring     string `json:"scoring_func"`
		Groups      int    `json:"n_group"`
		GroupsUsed  int    `json:"topk_group"`
	}
	if err := h.Decode(&f); err != nil {
		return err
	}
	l := model.Latent{KV: f.LatentKV, Key: f.KeyRest + f.KeyRotated, Value: f.ValueDim, Split: true}
	if f.LatentQ != nil {
		l.Q = *f.LatentQ
	}
	c.Latent, c.RopeDim, c.HeadDim, c.KVHeads = l, f.KeyRotated, f.LatentKV+f.KeyRotated, 1
	c.Experts = model.Experts{Count: f.Routed, Used: h.ExpertsUsed, FFN: h.ExpertFFN,
		Shared: f.SharedCount * h.ExpertFFN,
		Dense:  f.DenseFirst}
	c.Gating = model.Router{Scale: float32(cmp.Or(h.RoutedTimes, 1)), Norm: h.NormTopK != nil && *h.NormTopK,
		Groups: f.Groups, GroupsUsed: f.GroupsUsed}
	switch f.Scoring {
	case "", "softmax":
	case "sigmoid":
		c.Gating.Score = model.Sigmoid
	default:
		return fmt.Errorf("scoring_func %q is %w: it must be softmax or sigmoid", f.Scoring, model.ErrUnsupported)
	}
	return nil
}

// chatDeepSeek is a chat template similar to that of the family, for synthetic vocabularies.
const chatDeepSeek = `{{ bos_token }}{% for message in messages %}{% if message['role'] == 'assistant' %}<｜Assistant｜>{{ message['content'] }}<｜end▁of▁sentence｜>{% elif message['role'] == 'user' %}<｜User｜>{{ message['content'] }}{% else %}{{ message['content'] }}{% endif %}{% endfor %}{% if add_generation_prompt %}<｜Assistant｜>{% endif %}`
