package metadata

import (
	"cmp"
	"strings"

	"sandwich/runtime/model"
)

// DeepseekLog is the factor by which converters multiply YaRN's logarithm multiplier.
const DeepseekLog = 0.1

// Keys of the norms' epsilon.
const (
	rmsEps   = "attention.layer_norm_rms_epsilon"
	layerEps = "attention.layer_norm_epsilon"
)

// keyWriter receives metadata: a GGUF writer, or numbers.
type keyWriter interface {
	SetString(key, v string)
	SetBool(key string, v bool)
	SetUint32(key string, v uint32)
	SetFloat32(key string, v float32)
	SetInts(key string, v []int32)
}

// Write writes the metadata that describe a configuration. fileType is general.file_type.
// layerNorm says that the norms are LayerNorms, whose epsilon has another key.
func Write(w keyWriter, c model.Config, fileType uint32, layerNorm bool) {
	key := func(s string) string { return c.Arch + "." + s }
	w.SetString("general.architecture", c.Arch)
	w.SetString("general.name", c.Name+" (random weights)")
	w.SetUint32("general.file_type", fileType)
	w.SetUint32("general.quantization_version", 2)
	w.SetUint32(key("context_length"), uint32(c.Context))
	w.SetUint32(key("embedding_length"), uint32(c.Hidden))
	w.SetUint32(key("block_count"), uint32(c.Layers))
	writeSizes(w, key("feed_forward_length"), c.FFN, c.FFNOf)
	w.SetUint32(key("attention.head_count"), uint32(c.Heads))
	writeSizes(w, key("attention.head_count_kv"), c.KVHeads, c.KVHeadsOf)
	writeHeads(w, c, key)
	eps := rmsEps
	if layerNorm {
		eps = layerEps
	}
	w.SetFloat32(key(eps), float32(c.Eps))
	w.SetUint32(key("rope.dimension_count"), uint32(c.RotatedDims()))
	w.SetFloat32(key("rope.freq_base"), float32(c.RopeBase))
	w.SetUint32(key("vocab_size"), uint32(c.Vocab))
	if c.RopeScale != 0 {
		w.SetString(key("rope.scaling.type"), "linear")
		w.SetFloat32(key("rope.scaling.factor"), float32(1/c.RopeScale))
	}
	if c.RopeGain != 0 {
		w.SetFloat32(key("rope.scaling.attn_factor"), float32(c.RopeGain))
	}
	if y := c.Yarn; y != nil {
		w.SetString(key("rope.scaling.type"), "yarn")
		w.SetFloat32(key("rope.scaling.factor"), float32(y.Factor))
		w.SetUint32(key("rope.scaling.original_context_length"), uint32(y.Original))
		log := y.Log
		if c.Latent.KV > 0 {
			log *= DeepseekLog
		}
		w.SetFloat32(key("rope.scaling.yarn_log_multiplier"), float32(log))
	}
	if n := max(c.Original, c.AttnTemperatureLength); n > 0 {
		w.SetUint32(key("rope.scaling.original_context_length"), uint32(n))
	}
	writeValues(w, c, key)
	writeLayers(w, c, key)
	writeRecurrence(w, c.Recurrence, key)
	writeSections(w, c)
	if e := c.Experts; e.Count > 0 {
		w.SetUint32(key("expert_count"), uint32(e.Count))
		w.SetUint32(key("expert_used_count"), uint32(e.Used))
		w.SetUint32(key("expert_feed_forward_length"), uint32(e.FFN))
		if e.Shared > 0 {
			w.SetUint32(key("expert_shared_feed_forward_length"), uint32(e.Shared))
		}
	}
}

// writeSizes writes a size, or a list of sizes by layer.
func writeSizes(w keyWriter, key string, all int, of []int) {
	if of == nil {
		w.SetUint32(key, uint32(all))
		return
	}
	list := make([]int32, len(of))
	for i, v := range of {
		list[i] = int32(v)
	}
	w.SetInts(key, list)
}

// writeHeads writes the sizes of heads.
func writeHeads(w keyWriter, c model.Config, key func(string) string) {
	l := c.Latent
	length := func(name string, n int) { w.SetUint32(key("attention."+name), uint32(n)) }
	switch {
	case l.Split:
		length("key_length", c.HeadDim)
		length("value_length", l.KV)
		length("key_length_mla", l.Key)
		length("value_length_mla", l.Value)
	case l.KV > 0:
		length("key_length", l.Key)
		length("value_length", l.Value)
	default:
		length("key_length", c.HeadDim)
		length("value_length", c.HeadDim)
	}
	if l.KV > 0 {
		length("kv_lora_rank", l.KV)
		length("q_lora_rank", l.Q)
	}
	if l.KV > 0 || c.Gating != (model.Router{}) {
		writeGating(w, c, key)
	}
}

// writeGating writes the parameters of the router.
func writeGating(w keyWriter, c model.Config, key func(string) string) {
	g := c.Gating
	w.SetUint32(key("expert_gating_func"), 1+uint32(g.Score))
	w.SetBool(key("expert_weights_norm"), g.Norm)
	w.SetUint32(key("expert_shared_count"), uint32(c.Experts.Shared/c.Experts.FFN))
	w.SetFloat32(key("expert_weights_scale"), cmp.Or(g.Scale, 1))
	if g.Groups > 1 {
		w.SetUint32(key("expert_group_count"), uint32(g.Groups))
		w.SetUint32(key("expert_group_used_count"), uint32(g.GroupsUsed))
	}
}

// writeLayers writes values that differ by layer.
func writeLayers(w keyWriter, c model.Config, key func(string) string) {
	if c.Windows.Layers != nil {
		w.SetInts(key("attention.sliding_window_pattern"), flags(c.Windows.Layers))
	}
	for _, s := range []struct {
		name  string
		value int
	}{{"attention.key_length_swa", c.Windows.HeadDim}, {"attention.value_length_swa", c.Windows.HeadDim},
		{"rope.dimension_count_swa", c.Windows.RopeDim}, {"attention.shared_kv_layers", c.SharedKV},
		{"embedding_length_per_layer_input", c.Inputs}, {"interleave_moe_layer_step", c.Experts.Every},
		{"leading_dense_block_count", c.Experts.Dense}} {
		if s.value != 0 || s.name == "embedding_length_per_layer_input" && c.Arch == "gemma4" {
			w.SetUint32(key(s.name), uint32(s.value))
		}
	}
}

// writeRecurrence writes the sizes of recurrent layers.
func writeRecurrence(w keyWriter, r model.Recurrence, key func(string) string) {
	if r.KeyHeads == 0 {
		if r.Conv > 0 {
			w.SetUint32(key("shortconv.l_cache"), uint32(r.Conv))
		}
		return
	}
	for _, s := range []struct {
		name  string
		value int
	}{{"ssm.conv_kernel", r.Conv}, {"ssm.state_size", r.KeyDim}, {"ssm.group_count", r.KeyHeads},
		{"ssm.time_step_rank", r.ValueHeads}, {"ssm.inner_size", r.ValueHeads * r.ValueDim},
		{"full_attention_interval", r.Every}} {
		w.SetUint32(key(s.name), uint32(s.value))
	}
	if r.Layers != nil {
		w.SetInts(key("attention.recurrent_layers"), flags(r.Layers))
	}
}

// writeSections writes how the rotating pairs are divided among time, height and width, as Qwen3.5
// divides 32 pairs into 11, 11 and 10. Text has the same position on all three axes, but llama.cpp
// requires the key.
func writeSections(w keyWriter, c model.Config) {
	if !strings.HasPrefix(c.Arch, "qwen35") {
		return
	}
	pairs := int32(c.RotatedDims() / 2)
	w.SetInts(c.Arch+".rope.dimension_sections", []int32{(pairs + 2) / 3, (pairs + 1) / 3, pairs / 3, 0})
}

// writeValues writes scale factors, soft caps and windows.
func writeValues(w keyWriter, c model.Config, key func(string) string) {
	if c.Windows.Size > 0 {
		w.SetUint32(key("attention.sliding_window"), uint32(c.Windows.Size))
	}
	for _, s := range []struct {
		name  string
		value float64
	}{
		{"embedding_scale", c.Scales.Embed}, {"residual_scale", c.Scales.Residual}, {"attention.scale", c.Scales.Attn},
		{"logit_scale", c.Scales.Logits}, {"attn_logit_softcapping", c.Scales.AttnCap},
		{"final_logit_softcapping", c.Scales.LogitCap}, {"rope.freq_base_swa", c.Windows.Base},
		{"attention.temperature_scale", c.AttnTemperature},
	} {
		if s.value != 0 {
			w.SetFloat32(key(s.name), float32(s.value))
		}
	}
}
