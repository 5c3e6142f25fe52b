package metadata

import (
	"slices"

	"sandwich/runtime/model"
)

// dims reads the sizes that all families have.
func (m *Reader) dims(c *model.Config) {
	c.Hidden = m.Size("embedding_length", 1<<17)
	c.Layers = m.Size("block_count", 1<<10)
	c.Heads = m.Size("attention.head_count", 1<<12)
	c.HeadDim = m.SizeOr("attention.key_length", 1<<12, max(1, c.Hidden/c.Heads))
	c.Context = m.Size("context_length", 1<<26)
	if v := m.SizeOr("attention.value_length", 1<<12, c.HeadDim); v != c.HeadDim && !m.Has("attention.kv_lora_rank") {
		m.Fail("value heads of size %d with key heads of size %d are %w", v, c.HeadDim, model.ErrUnsupported)
	}
	c.KVHeads, c.FFN = c.Heads, 1
	if m.Has("attention.head_count_kv") {
		c.KVHeads = m.Size("attention.head_count_kv", 1<<12)
	}
	if _, list := m.Ints("feed_forward_length"); !list {
		ffn := "feed_forward_length"
		if !m.Has(ffn) && m.Has("expert_"+ffn) { // all layers have experts
			ffn = "expert_" + ffn
		}
		c.FFN = m.Size(ffn, 1<<20)
	}
	m.layers(c)
	eps := rmsEps
	if !m.HasFloat(eps) && m.HasFloat(layerEps) {
		eps = layerEps
	}
	if c.Eps = m.PositiveOr(eps, 0); !(c.Eps > 0 && c.Eps < 1) {
		m.Fail("%s is missing or outside (0, 1)", m.Key(eps))
	}
}

// layers reads the sizes that files may give per layer. The common size is their maximum.
func (m *Reader) layers(c *model.Config) {
	m.eachLayer("attention.head_count_kv", 1<<12, &c.KVHeads, &c.KVHeadsOf, c.Layers)
	m.eachLayer("feed_forward_length", 1<<20, &c.FFN, &c.FFNOf, c.Layers)
}

// eachLayer reads a list with a size per layer, if the source has one. It sets of only if the sizes
// differ or are all 0, which all cannot express.
func (m *Reader) eachLayer(suffix string, limit int32, all *int, of *[]int, layers int) {
	list, ok := m.Ints(suffix)
	if !ok {
		return
	}
	if len(list) != layers {
		m.Fail("%s has %d entries for %d layers", m.Key(suffix), len(list), layers)
		return
	}
	sizes, same := make([]int, layers), true
	for i, v := range list {
		if v < 0 || v > limit {
			m.Fail("%s of layer %d is %d, outside 0..%d", m.Key(suffix), i, v, limit)
			return
		}
		sizes[i] = int(v)
		same = same && v == list[0]
	}
	*all = max(1, slices.Max(sizes))
	if !same || sizes[0] == 0 {
		*of = sizes
	}
}

// Experts reads the sizes of a mixture of experts. Their width defaults to that of the
// feed-forward.
func (m *Reader) Experts(c *model.Config) {
	c.Experts = model.Experts{Count: m.Size("expert_count", model.MaxExperts),
		Used: m.Size("expert_used_count", model.MaxExperts),
		FFN:  m.SizeOr("expert_feed_forward_length", 1<<20, c.FFN)}
}

// ExpertsOf reads experts whose width defaults to that of the feed-forward divided by the experts
// per token (llama.cpp's rule for the Qwen families).
func (m *Reader) ExpertsOf(c *model.Config) {
	m.Experts(c)
	if !m.Has("expert_feed_forward_length") {
		c.Experts.FFN = max(1, c.FFN/c.Experts.Used)
	}
}

// Windows reads the size of windows and which layers have them; the default is all but the last of
// each period.
func (m *Reader) Windows(c *model.Config, period int) {
	c.Windows.Size = m.Size("attention.sliding_window", 1<<26)
	c.Windows.Base = m.PositiveOr("rope.freq_base_swa", 0)
	const pattern = "attention.sliding_window_pattern"
	if list, ok := m.Ints(pattern); ok {
		for _, has := range list {
			c.Windows.Layers = append(c.Windows.Layers, has != 0)
		}
		return
	}
	c.Windows.Period = m.SizeOr(pattern, 1<<10, period)
}

// Caps reads the soft caps of scores and logits that the source has.
func (m *Reader) Caps(c *model.Config) {
	c.Scales.AttnCap = m.PositiveOr("attn_logit_softcapping", c.Scales.AttnCap)
	c.Scales.LogitCap = m.PositiveOr("final_logit_softcapping", c.Scales.LogitCap)
}

// Scales reads the scale factors that the source has.
func (m *Reader) Scales(c *model.Config) {
	for _, s := range []struct {
		key   string
		value *float64
	}{{"embedding_scale", &c.Scales.Embed}, {"logit_scale", &c.Scales.Logits}, {"residual_scale", &c.Scales.Residual},
		{"attention.scale", &c.Scales.Attn}} {
		if m.HasFloat(s.key) {
			*s.value = m.PositiveOr(s.key, 1)
		}
	}
}

// SkipPredictionLayers removes the last layers, if they predict tokens after the next one; a
// forward does not need them.
func (m *Reader) SkipPredictionLayers(c *model.Config) {
	n := m.CountOr("nextn_predict_layers", 1<<10)
	if n >= c.Layers {
		m.Fail("%s is %d of %d layers: the file is damaged", m.Key("nextn_predict_layers"), n, c.Layers)
		return
	}
	c.Layers -= n
	if len(c.KVHeadsOf) > c.Layers {
		c.KVHeadsOf = c.KVHeadsOf[:c.Layers]
	}
	if len(c.FFNOf) > c.Layers {
		c.FFNOf = c.FFNOf[:c.Layers]
	}
	if r := &c.Recurrence; len(r.Layers) > c.Layers {
		r.Layers = r.Layers[:c.Layers]
	}
}
