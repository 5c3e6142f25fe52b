package model

import (
	"bytes"
	"encoding/binary"
	"math"
	"strings"
	"testing"

	"sandwich/runtime/gguf"
)

// TestFusedByConverters: q, k and v in one tensor, and gate and up of the experts, are read in any
// family as if they were apart, biases too.
func TestFusedByConverters(t *testing.T) {
	for _, family := range []string{"qwen2", "qwen3next", "qwen35", "qwen2moe", "gpt-oss", "lfm2"} {
		c := small(family)
		c.Fused, c.FusedExperts = true, c.Experts.Count > 0
		bias := family == "qwen2" || family == "qwen2moe" || family == "gpt-oss"
		m, err := c.Model()
		if err != nil {
			t.Fatal(err)
		}
		names := map[string]int{}
		for _, s := range m.tensors() {
			names[s.name[strings.LastIndex(s.name[:strings.LastIndex(s.name, ".")], ".")+1:]] += len(s.parts)
			if s.vector != nil && strings.HasSuffix(s.name, "attn_qkv.bias") && s.dims[0] != (*s.vector).Of {
				t.Errorf("%s: %s has %v", family, s.name, s.dims)
			}
		}
		if names["attn_q.weight"] > 0 || names["attn_qkv.weight"] == 0 || names["ffn_gate_exps.weight"] > 0 ||
			(names["attn_qkv.bias"]+names["attn_q.bias"] > 0) != bias && names["attn_q.bias"] > 0 {
			t.Errorf("%s asks for %v", family, names)
		}
	}
	v := Vector{Name: "b", N: 2, At: 1, Of: 4, Stack: 2}
	var raw bytes.Buffer
	for i := range 8 {
		_ = binary.Write(&raw, binary.LittleEndian, float32(i))
	}
	if err := v.read(&gguf.Tensor{Name: "b", Dims: []int{4, 2}, Type: gguf.F32, Data: raw.Bytes()}); err != nil ||
		len(v.Data) != 4 || v.Data[0] != 1 || v.Data[3] != 6 {
		t.Errorf("%v, %v", v.Data, err)
	}
}

// TestUnknownTensors: tensors of a layer that nothing reads change answers, those of layers that
// the file does not count say that it lies, and so does a second head; what else converters left
// over is no harm.
func TestUnknownTensors(t *testing.T) {
	raw := synth(t, small("qwen3"), gguf.F32, 1)
	rename := func(from, to string) []byte { return bytes.Replace(raw, []byte(from), []byte(to), 1) }
	for want, data := range map[string][]byte{
		"of layer 1, but the file has 1":   patched(t, raw, "qwen3.block_count", 1),
		"it is not a complete qwen3 model": rename("blk.1.ffn_norm.weight", "blk.1.xyz_norm.weight"),
	} {
		f, err := gguf.Parse(data)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Load(f); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	sinks := synth(t, small("gpt-oss"), gguf.F32, 1)
	for from, to := range map[string]string{"blk.1.attn_sinks.weight": "blk.1.attn_sonks.weight",
		"blk.1.attn_norm.weight": "output_second_1.weight", "blk.0.attn_norm.weight": "lm_head_second1.weight"} {
		f, err := gguf.Parse(bytes.ReplaceAll(sinks, []byte(from), []byte(to)))
		if err != nil {
			t.Fatal(err)
		}
		report, err := Inspect(f, func(*Model) (Memory, []error) { return Memory{}, nil })
		if err != nil || len(report.Reasons) != 2 || !strings.Contains(report.Reasons[1], to+" is not supported") {
			t.Errorf("%v, %q", err, report.Reasons)
		}
	}
}

// TestKeysOfOtherTypes: a key that the file has as something else is no key that it lacks.
func TestKeysOfOtherTypes(t *testing.T) {
	raw := synth(t, small("gemma4-moe"), gguf.F32, 1)
	const key = "gemma4.expert_count"
	at := bytes.Index(raw, []byte(key)) + len(key)
	binary.LittleEndian.PutUint32(raw[at:], 6) // a float
	binary.LittleEndian.PutUint32(raw[at+4:], math.Float32bits(8))
	f, err := gguf.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Load(f); err == nil || !strings.Contains(err.Error(), "invalid value 8 for "+key) {
		t.Error(err)
	}
}

// TestDefaultsOfKeys: what files of the last years leave out has the value that llama.cpp gives it.
func TestDefaultsOfKeys(t *testing.T) {
	for _, c := range []struct {
		family, key string
		got         func(Config) int
		want        int
	}{
		{"qwen35moe", "qwen35moe.feed_forward_length", func(c Config) int { return c.FFN }, 256},
		{"qwen2moe", "qwen2moe.expert_feed_forward_length", func(c Config) int { return c.Experts.FFN }, 512 / 4},
		{"gemma2", "gemma2.attention.sliding_window", func(c Config) int { return c.Windows.Size }, 4096},
		{"gemma2", "gemma2.attn_logit_softcapping", func(c Config) int { return int(c.Scales.AttnCap) }, 50},
	} {
		raw := synth(t, small(c.family), gguf.F32, 1)
		other := strings.Repeat("x", len(c.key))
		f, err := gguf.Parse(bytes.Replace(raw, []byte(c.key), []byte(other), 1))
		if err != nil {
			t.Fatal(err)
		}
		config, errs := ConfigErrors(f)
		if got := c.got(config); len(errs) > 0 || got != c.want {
			t.Errorf("%s without %s: %d, want %d (%v)", c.family, c.key, got, c.want, errs)
		}
	}
}

// TestScalingOfRotations: a factor without a rule, or under its first name, is a linear one, as in
// llama.cpp; LongRoPE has its factors in any family; and what asks for a temperature has one with
// or without YaRN.
func TestScalingOfRotations(t *testing.T) {
	for _, n := range []numbers{{"llama.rope.scaling.factor": {4}}, {"llama.rope.scale_linear": {4}},
		{"llama.rope.scaling.factor": {0}, "llama.rope.scale_linear": {4}}} {
		m, c := Metadata{source: n, arch: "llama"}, Config{Dims: Dims{HeadDim: 64, Context: 128}}
		if m.rope(&c); c.RopeScale != 0.25 || len(m.errs) > 0 {
			t.Errorf("%v: positions are multiplied by %v (%v)", n, c.RopeScale, m.errs)
		}
	}
	for _, family := range []string{"gemma2", "gpt-oss", "llama4"} {
		m, c := Metadata{source: numbers{family + ".rope.scaling.factor": {4}}, arch: family}, small(family)
		m.source = unscaled{m.source.(numbers)}
		m.rope(&c)
		m.near(&c)
		b := Builder{Config: c}
		if far := b.Rope(Rope{}); len(m.errs) > 0 || far.Scale != 1 || b.Near(far).Scale != 0.25 {
			t.Errorf("%s, a factor that is turned off: %v, with a window %v", family, far.Scale, b.Near(far).Scale)
		}
	}
	long := small("llama")
	long.Original = 64
	mistral := small("mistral3")
	mistral.Yarn, mistral.AttnTemperatureLength = nil, 77
	near := small("gpt-oss")
	near.Windows.Base = 5
	still := small("granite")
	still.NoRope = true
	for _, c := range []struct {
		Config
		holds func(op Op) bool
	}{
		{long, func(op Op) bool { return op.Rope.Long != nil && op.Rope.Long.Original == 64 }},
		{mistral, func(op Op) bool { return op.AttnTemperature.Length == 77 }},
		{near, func(op Op) bool { return (op.Rope.Base == 5) == (op.Layer == 0) && op.Rope.Yarn != nil }},
		{still, func(op Op) bool { return op.Rope == nil }},
	} {
		m, err := c.Model()
		if err != nil {
			t.Fatal(err)
		}
		for _, op := range m.Ops {
			if op.Kind == OpRotate && !c.holds(op) {
				t.Errorf("%s, layer %d: %+v, %+v", c.Arch, op.Layer, op.Rope, op.AttnTemperature)
			}
		}
	}
}

// TestHeadOfAnEmbedding: a head that is the embedding may have a bias, and may lack it.
func TestHeadOfAnEmbedding(t *testing.T) {
	c := small("qwen2")
	c.Tied = true
	f, err := gguf.Parse(synth(t, c, gguf.F32, 1))
	if err != nil {
		t.Fatal(err)
	}
	m, err := Load(f)
	if err != nil {
		t.Fatal(err)
	}
	if head := m.Ops[len(m.Ops)-1]; len(head.Bias) != 1 || head.Bias[0] != nil {
		t.Errorf("the head has bias %+v", head.Bias)
	}
}

// unscaled is a source whose rule of scaling is none.
type unscaled struct{ numbers }

func (u unscaled) String(key string) (string, bool) {
	return "none", strings.HasSuffix(key, ".rope.scaling.type")
}
