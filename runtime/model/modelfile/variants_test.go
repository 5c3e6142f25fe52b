package modelfile_test

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"
	"strings"
	"testing"

	"sandwich/runtime/gguf"
	"sandwich/runtime/model"
	"sandwich/runtime/model/arch"
	"sandwich/runtime/model/modelfile"
	"sandwich/runtime/model/synth"
	"sandwich/runtime/model/tensors"
)

// TestFusedByConverters checks that every family reads q, k and v in one tensor, and gate and up of
// the experts in one, like separate tensors, with their biases.
func TestFusedByConverters(t *testing.T) {
	for _, family := range []string{"qwen2", "qwen3next", "qwen35", "qwen2moe", "gpt-oss", "lfm2"} {
		c := synth.Small(family)
		c.Fused, c.FusedExperts = true, c.Experts.Count > 0
		bias := family == "qwen2" || family == "qwen2moe" || family == "gpt-oss"
		m, err := arch.Model(c)
		if err != nil {
			t.Fatal(err)
		}
		names := map[string]int{}
		for _, s := range tensors.List(m) {
			names[s.Name[strings.LastIndex(s.Name[:strings.LastIndex(s.Name, ".")], ".")+1:]] += len(s.Parts)
			if s.Vector != nil && strings.HasSuffix(s.Name, "attn_qkv.bias") && s.Dims[0] != (*s.Vector).Of {
				t.Errorf("%s: %s has %v", family, s.Name, s.Dims)
			}
		}
		if names["attn_q.weight"] > 0 || names["attn_qkv.weight"] == 0 || names["ffn_gate_exps.weight"] > 0 ||
			(names["attn_qkv.bias"]+names["attn_q.bias"] > 0) != bias && names["attn_q.bias"] > 0 {
			t.Errorf("%s asks for %v", family, names)
		}
	}
}

// TestUnknownTensors checks the errors for tensors of a layer that no op uses, for layers beyond
// the number of layers, and for a second head.
func TestUnknownTensors(t *testing.T) {
	raw := write(t, synth.Small("qwen3"), gguf.F32, 1)
	rename := func(from, to string) []byte { return bytes.Replace(raw, []byte(from), []byte(to), 1) }
	for want, data := range map[string][]byte{
		"of layer 1, but the file has 1":   patched(t, raw, "qwen3.block_count", 1),
		"it is not a complete qwen3 model": rename("blk.1.ffn_norm.weight", "blk.1.xyz_norm.weight"),
	} {
		f, err := gguf.Parse(data)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := modelfile.Load(f); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	sinks := write(t, synth.Small("gpt-oss"), gguf.F32, 1)
	for from, to := range map[string]string{"blk.1.attn_sinks.weight": "blk.1.attn_sonks.weight",
		"blk.1.attn_norm.weight": "output_second_1.weight", "blk.0.attn_norm.weight": "lm_head_second1.weight"} {
		f, err := gguf.Parse(bytes.ReplaceAll(sinks, []byte(from), []byte(to)))
		if err != nil {
			t.Fatal(err)
		}
		report, err := modelfile.Inspect(f, func(*model.Model) (modelfile.Memory, []error) {
			return modelfile.Memory{},
				nil
		})
		if err != nil || len(report.Reasons) != 2 || !strings.Contains(report.Reasons[1], to+" is not supported") {
			t.Errorf("%v, %q", err, report.Reasons)
		}
	}
}

// TestKeysOfOtherTypes checks that a key with a value of a wrong type is an error and does not
// count as missing.
func TestKeysOfOtherTypes(t *testing.T) {
	raw := write(t, synth.Small("gemma4-moe"), gguf.F32, 1)
	const key = "gemma4.expert_count"
	at := bytes.Index(raw, []byte(key)) + len(key)
	binary.LittleEndian.PutUint32(raw[at:], 6) // a float
	binary.LittleEndian.PutUint32(raw[at+4:], math.Float32bits(8))
	f, err := gguf.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := modelfile.Load(f); err == nil || !strings.Contains(err.Error(), "invalid value 8 for "+key) {
		t.Error(err)
	}
}

// TestListsOfSizes checks that a count may be given as a list with one entry per layer, as some
// converters do, if all are equal.
func TestListsOfSizes(t *testing.T) {
	c := synth.Small("qwen3")
	c.Layers = 6 // a list of 6 entries makes the header longer by 32 bytes, the alignment
	raw := write(t, c, gguf.F32, 1)
	const key = "qwen3.attention.head_count"
	at := bytes.Index(raw, append([]byte(key), 4)) + len(key) // 4: uint32
	for _, test := range []struct {
		last int
		want string
	}{
		{c.Heads, ""},
		{c.Heads * 2, key + " differs between layers, which is not supported"},
	} {
		list := binary.LittleEndian.AppendUint32(nil, 9) // an array
		list = binary.LittleEndian.AppendUint32(list, 5) // of int32
		list = binary.LittleEndian.AppendUint64(list, uint64(c.Layers))
		for range c.Layers - 1 {
			list = binary.LittleEndian.AppendUint32(list, uint32(c.Heads))
		}
		list = binary.LittleEndian.AppendUint32(list, uint32(test.last))
		f, err := gguf.Parse(slices.Concat(raw[:at], list, raw[at+8:]))
		if err != nil {
			t.Fatal(err)
		}
		m, err := modelfile.Load(f)
		switch {
		case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
			t.Errorf("last layer %d: %v, want %q", test.last, err, test.want)
		case test.want == "" && err != nil:
			t.Errorf("equal entries: %v", err)
		case test.want == "" && m.Dims.Heads != c.Heads:
			t.Errorf("%d heads, want %d", m.Dims.Heads, c.Heads)
		}
	}
}

// TestDefaultsOfKeys checks that missing keys have the defaults of llama.cpp.
func TestDefaultsOfKeys(t *testing.T) {
	for _, c := range []struct {
		family, key string
		got         func(model.Config) int
		want        int
	}{
		{"qwen35moe", "qwen35moe.feed_forward_length", func(c model.Config) int { return c.FFN }, 256},
		{"qwen2moe", "qwen2moe.expert_feed_forward_length", func(c model.Config) int { return c.Experts.FFN }, 512 / 4},
		{"gemma2", "gemma2.attention.sliding_window", func(c model.Config) int { return c.Windows.Size }, 4096},
		{"gemma2", "gemma2.attn_logit_softcapping", func(c model.Config) int { return int(c.Scales.AttnCap) }, 50},
	} {
		raw := write(t, synth.Small(c.family), gguf.F32, 1)
		other := strings.Repeat("x", len(c.key))
		f, err := gguf.Parse(bytes.Replace(raw, []byte(c.key), []byte(other), 1))
		if err != nil {
			t.Fatal(err)
		}
		config, errs := arch.ConfigErrors(f)
		if got := c.got(config); len(errs) > 0 || got != c.want {
			t.Errorf("%s without %s: %d, want %d (%v)", c.family, c.key, got, c.want, errs)
		}
	}
}

// TestHeadOfAnEmbedding checks that a head that is the embedding may have a bias or none.
func TestHeadOfAnEmbedding(t *testing.T) {
	c := synth.Small("qwen2")
	c.Tied = true
	f, err := gguf.Parse(write(t, c, gguf.F32, 1))
	if err != nil {
		t.Fatal(err)
	}
	m, err := modelfile.Load(f)
	if err != nil {
		t.Fatal(err)
	}
	if head := m.Ops[len(m.Ops)-1]; len(head.Bias) != 1 || head.Bias[0] != nil {
		t.Errorf("the head has bias %+v", head.Bias)
	}
}
