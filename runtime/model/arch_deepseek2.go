package model

import (
	"cmp"
	"fmt"
	"math"

	"sandwich/plans"
	"sandwich/runtime/gguf"
)

func init() {
	Register(Architecture{Name: "deepseek2", Decoder: deepseek2, Vocabulary: deepseekVocabulary,
		HF: []string{"deepseek_v2", "deepseek_v3"}, Knows: []string{"yarn"}, ReadHF: readDeepseekHF,
		Read: func(m *Metadata, c *Config) {
			m.latent(c)
			m.Experts(c)
			c.Experts.Dense = m.CountOr("leading_dense_block_count", 1<<10)
			c.Experts.Shared = c.Experts.FFN * m.CountOr("expert_shared_count", 1<<8)
			c.Gating = m.gating()
			m.skipPredictionLayers(c)
			if m.hasFloat("attention.temperature_scale") {
				m.fail("%s (attention temperature by position) is %w in a deepseek2 model",
					m.key("attention.temperature_scale"), ErrUnsupported)
			}
			if c.Yarn != nil {
				c.Yarn.Log = m.notBelow0("rope.scaling.yarn_log_multiplier") / deepseekLog
			}
		},
		Check: func(c Config) error {
			if err := c.Latent.check(c); err != nil {
				return err
			}
			if g, e := c.Gating, c.Experts; g.Groups > 1 && (e.Count%g.Groups != 0 || g.GroupsUsed > g.Groups ||
				g.GroupsUsed*(e.Count/g.Groups) < e.Used) {
				return fmt.Errorf("%d of %d experts cannot be chosen from %d of %d groups", e.Used, e.Count,
					g.GroupsUsed, g.Groups)
			}
			return c.Experts.check()
		},
	})
}

// deepseekLog is the factor by which converters multiply YaRN's logarithm multiplier.
const deepseekLog = 0.1

// latent reads the sizes of latent attention.
func (m *Metadata) latent(c *Config) {
	c.RopeDim = m.SizeOr("rope.dimension_count", 1<<12, c.ropeDim())
	l := Latent{Q: m.CountOr("attention.q_lora_rank", 1<<14), KV: m.Size("attention.kv_lora_rank", 1<<14),
		Split: m.Has("attention.key_length_mla")}
	if l.Split {
		l.Key, l.Value = m.Size("attention.key_length_mla", 1<<12), m.Size("attention.value_length_mla", 1<<12)
		c.HeadDim, c.KVHeads = l.KV+c.ropeDim(), 1
	} else {
		l.Key, l.Value = m.Size("attention.key_length", 1<<12), m.Size("attention.value_length", 1<<12)
		c.HeadDim, c.KVHeads = max(l.Key, l.Value), c.Heads
	}
	c.Latent = l
}

// gating reads how the router scores and chooses experts.
func (m *Metadata) gating() Router {
	r := Router{Scale: float32(m.PositiveOr("expert_weights_scale", 1)),
		Groups: m.CountOr("expert_group_count", maxExperts), GroupsUsed: m.CountOr("expert_group_used_count",
			maxExperts)}
	const sigmoid = 2
	switch kind := m.CountOr("expert_gating_func", 16); kind {
	case 0, 1:
	case sigmoid:
		r.Score = Sigmoid
	default:
		m.fail("%s %d is %w: it must be 1 (softmax) or 2 (sigmoid)", m.key("expert_gating_func"), kind,
			ErrUnsupported)
	}
	r.Norm, _ = m.Bool("expert_weights_norm")
	return r
}

// deepseek2 writes DeepSeek-V2 (2024) and V3 (2024): latent attention, and routed experts with one
// or more shared experts in all layers but the first.
func deepseek2(b *Builder) {
	rope, scale := b.latentRope()
	b.Embed(1) // X [T, hidden]
	for i := range b.Layers() {
		b.Norm("attn_norm")          // H [T, hidden]
		b.latentQKV(rope)            // Q [T, heads*headDim], K and V in the cache
		b.Attend(Attn{Scale: scale}) // Att [T, heads*headDim]
		b.latentOut()                // Y [T, hidden]
		b.Norm("ffn_norm")           // H [T, hidden]
		if !b.Experts.in(i) {
			b.Feed(Feed{In: BufH, Act: SwiGLU, Shared: true}) // Shared [T, ffn], Y [T, hidden]
			continue
		}
		if b.Experts.Shared > 0 {
			b.Shared(SwiGLU) // Shared [T, shared ffn], Y [T, hidden]
		}
		b.Mix(Mixture{Act: SwiGLU, Router: b.biasedRouter(IfPresent), Accumulate: b.Experts.Shared > 0})
	}
	b.Norm("output_norm") // H [T, hidden]
	b.Head(1)             // Logits [wanted rows, vocab]
}

// biasedRouter returns the router of the file, with a bias on the scores by which experts are
// chosen.
func (b *Builder) biasedRouter(bias Need) Router {
	router := b.Gating
	router.Scale = cmp.Or(router.Scale, 1)
	router.Bias = b.vector("exp_probs_b.bias", b.Experts.Count, bias)
	return router
}

// latentRope returns the rotation and the scale of attention scores. YaRN's magnitude applies to
// the scale, squared for queries and keys; the rotation has it only if the file gives no logarithm
// multiplier.
func (b *Builder) latentRope() (*Rope, float32) {
	r := b.Rope(Rope{})
	r.Gain = cmp.Or(b.RopeGain, 1)
	magnitude := r.Gain
	if b.Yarn != nil {
		if b.Yarn.Log == 0 {
			r.Gain *= b.Yarn.mscale(1)
		}
		magnitude = r.Gain * b.Yarn.mscale(b.Yarn.Log)
	}
	return r, float32(magnitude * magnitude / math.Sqrt(float64(b.Latent.Key)))
}

// latentQKV reads H [T, hidden] and writes LatentQ [T, latent], LatentKV [T, latent + rotated],
// Full [T, heads*key], then Q [T, heads*headDim] and the cache. If the file has matrices per head,
// queries are multiplied by those of the keys, so that all heads share the latent row as key and
// value in both phases (section 2.1.2); else each head has its own keys and values.
func (b *Builder) latentQKV(rope *Rope) {
	l, whole := b.Latent, plans.RoleWhole
	key, rotated := l.Key, b.ropeDim()
	kv := Product{Role: whole + "kv_a", Tensor: "attn_kv_a_mqa", N: l.KV + rotated, K: b.Hidden, Out: BufLatentKV}
	if l.Q > 0 {
		b.MatMul("latent", BufH, Product{Role: whole + "q_a", Tensor: "attn_q_a", N: l.Q, K: b.Hidden, Out: BufLatentQ},
			kv)
		b.RowNorm("attn_q_a_norm", BufLatentQ, l.Q)
		b.MatMul("q", BufLatentQ, Product{Role: whole + "q", Tensor: "attn_q_b", N: b.Heads * key, K: l.Q,
			Out: BufFull})
	} else {
		b.MatMul("latent", BufH, Product{Role: whole + "q", Tensor: "attn_q", N: b.Heads * key, K: b.Hidden,
			Out: BufFull},
			kv)
	}
	b.RowNorm("attn_kv_a_norm", BufLatentKV, l.KV)
	if l.Split {
		b.PerHead("k_b", BufFull, BufQ, key, b.heads.Dim, key-rotated, l.KV)
	} else {
		b.MatMul("kv_b", BufLatentKV, Product{Role: whole + "kv_b", Tensor: "attn_kv_b",
			N: b.Heads * (key - rotated + l.Value),
			K: l.KV, Out: BufKeyVal})
	}
	b.RotateLatent(rope)
}

// latentOut reads Att [T, heads*headDim] and writes Full [T, heads*value] and Y [T, hidden].
func (b *Builder) latentOut() {
	l := b.Latent
	if l.Split {
		b.PerHead("v_b", BufAtt, BufFull, b.heads.Dim, l.Value, l.KV, l.Value)
	} else {
		b.op(OpHeads, "values", Op{In: BufAtt, Outs: []Buf{BufFull}, Heads: b.heads, InStep: b.heads.Dim,
			OutStep: l.Value,
			N:       l.Value})
	}
	b.MatMul("o", BufFull, Product{Role: plans.RoleWhole + "o", Tensor: "attn_output", N: b.Hidden,
		K:   b.Heads * l.Value,
		Out: BufY})
}

// deepseekVocabulary writes a byte-level BPE vocabulary with DeepSeek's special tokens.
func deepseekVocabulary(w *gguf.Writer, tokens int) {
	special := []string{"<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>", "<｜User｜>", "<｜Assistant｜>"}
	writeBPE(w, tokens, "deepseek-v3", chatDeepSeek, special, 0, 1, true)
}

// readDeepseekHF reads the sizes of latent attention, with matrices per head, and of the experts.
func readDeepseekHF(h *HF, c *Config) error {
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
	if err := h.decode(&f); err != nil {
		return err
	}
	l := Latent{KV: f.LatentKV, Key: f.KeyRest + f.KeyRotated, Value: f.ValueDim, Split: true}
	if f.LatentQ != nil {
		l.Q = *f.LatentQ
	}
	c.Latent, c.RopeDim, c.HeadDim, c.KVHeads = l, f.KeyRotated, f.LatentKV+f.KeyRotated, 1
	c.Experts = Experts{Count: f.Routed, Used: h.ExpertsUsed, FFN: h.ExpertFFN, Shared: f.SharedCount * h.ExpertFFN,
		Dense: f.DenseFirst}
	c.Gating = Router{Scale: float32(cmp.Or(h.RoutedTimes, 1)), Norm: h.NormTopK != nil && *h.NormTopK,
		Groups: f.Groups, GroupsUsed: f.GroupsUsed}
	switch f.Scoring {
	case "", "softmax":
	case "sigmoid":
		c.Gating.Score = Sigmoid
	default:
		return fmt.Errorf("scoring_func %q is %w: it must be softmax or sigmoid", f.Scoring, ErrUnsupported)
	}
	return nil
}
