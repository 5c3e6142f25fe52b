package modelfile_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sandwich/runtime/gguf"
	"sandwich/runtime/model"
	"sandwich/runtime/model/arch"
	"sandwich/runtime/model/modelfile"
	"sandwich/runtime/model/synth"
)

// patched returns a file with other bits of the 32-bit number of a key.
func patched(t testing.TB, raw []byte, key string, bits uint32) []byte {
	t.Helper()
	at := bytes.Index(raw, []byte(key))
	if at < 0 {
		t.Fatalf("the file has no %s", key)
	}
	out := slices.Clone(raw)
	binary.LittleEndian.PutUint32(out[at+len(key)+4:], bits)
	return out
}

// TestFilesThatLie checks that an error of one line names an impossible value.
func TestFilesThatLie(t *testing.T) {
	raws := map[string][]byte{}
	for _, c := range []struct {
		family, key string
		bits        uint32
		want        string
	}{
		{"gemma3", "gemma3.block_count", 1 << 30, "block_count"},
		{"gemma3", "gemma3.block_count", 1000, "no tensor blk.2."},
		{"gemma3", "gemma3.block_count", 0, "block_count is 0"},
		{"gemma2", "gemma2.attention.sliding_window", 0, "sliding_window is 0"},
		{"gpt-oss", "gpt-oss.attention.sliding_window", 0, "sliding_window is 0"},
		{"gpt-oss", "gpt-oss.attention.sliding_window", math.MaxUint32, "sliding_window"},
		{"gpt-oss", "gpt-oss.expert_count", 1_000_000, "expert_count is 1000000"},
		{"gpt-oss", "gpt-oss.expert_used_count", 9, "8 experts"},
		{"granitemoe", "granitemoe.expert_used_count", 0, "expert_used_count is 0"},
		{"qwen2moe", "qwen2moe.expert_shared_feed_forward_length", 1 << 31, "expert_shared_feed_forward_length"},
		{"glm4", "glm4.rope.dimension_count", 15, "15 of 32 head dimensions"},
		{"glm4", "glm4.rope.dimension_count", 64, "64 of 32 head dimensions"},
		{"phi3", "phi3.rope.dimension_count", 0, "rope.dimension_count is 0"},
		{"llama-yarn", "llama.rope.scaling.factor", math.Float32bits(0.5), "invalid YaRN RoPE scaling"},
		{"llama-yarn", "llama.rope.scaling.factor", math.Float32bits(float32(math.NaN())), "rope.scaling.factor"},
		{"mistral3", "mistral3.attention.temperature_scale", math.Float32bits(-1), "temperature_scale"},
		{"mistral3", "mistral3.rope.scaling.yarn_log_multiplier", math.Float32bits(-1), "yarn_log_multiplier is -1"},
		{"granite", "granite.logit_scale", math.Float32bits(float32(math.Inf(1))), "logit_scale"},
		{"gemma2", "gemma2.attn_logit_softcapping", math.Float32bits(-50), "attn_logit_softcapping"},
		{"olmo2", "olmo2.attention.head_count_kv", 3, "8 query heads cannot share 3"},
		{"lfm2", "lfm2.shortconv.l_cache", 0, "shortconv.l_cache is 0"},
		{"lfm2", "lfm2.shortconv.l_cache", 1, "a convolution of 1 positions is too short"},
		{"lfm2moe", "lfm2moe.expert_gating_func", 3, "expert_gating_func 3 is"},
		{"lfm2moe", "lfm2moe.expert_used_count", 9, "8 experts"},
		{"qwen35", "qwen35.ssm.conv_kernel", 0, "ssm.conv_kernel is 0"},
		{"qwen35", "qwen35.ssm.state_size", 1 << 31, "ssm.state_size is 2147483648"},
		{"qwen35", "qwen35.ssm.group_count", 3, "4 value heads cannot share 3 key heads"},
		{"qwen35", "qwen35.ssm.time_step_rank", 3, "not a multiple of its 3 heads"},
		{"qwen35", "qwen35.ssm.inner_size", 1 << 20, "too large"},
		{"qwen35", "qwen35.full_attention_interval", 0, "full_attention_interval is 0"},
		{"bert", "bert.pooling_type", 0, "has no bert.pooling_type"},
		{"bert", "bert.pooling_type", 9, "pooling_type 9 is"},
		{"bert", "bert.pooling_type", 4, "no tensor cls.output.weight"},
		{"bert", "bert.context_length", 8, "tensor position_embd.weight has shape"},
		{"bert", "bert.attention.head_count", 3, "3 query heads cannot share"},
		{"bert", "bert.attention.layer_norm_epsilon", math.Float32bits(float32(math.NaN())), "layer_norm_epsilon is"},
		{"nomic-bert", "nomic-bert.rope.freq_base", math.Float32bits(-1), "freq_base"},
		{"gemma-embedding", "gemma-embedding.attention.sliding_window", 0, "sliding_window is 0"},
	} {
		if raws[c.family] == nil {
			raws[c.family] = write(t, synth.Small(c.family), gguf.F32, 1)
		}
		f, err := gguf.Parse(patched(t, raws[c.family], c.key, c.bits))
		if err != nil {
			t.Fatal(err)
		}
		_, err = modelfile.Load(f)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s of %s: %v, want a sentence with %q", c.key, c.family, err, c.want)
		}
	}
}

// TestStatesThatLie checks that sizes of states of 2^60, and a decay that is not a number, are
// refused before memory is allocated.
func TestStatesThatLie(t *testing.T) {
	for _, key := range []string{"qwen35.ssm.state_size", "qwen35.ssm.conv_kernel", "qwen35.ssm.group_count",
		"qwen35.ssm.time_step_rank", "qwen35.ssm.inner_size", "qwen3next.ssm.state_size", "lfm2.shortconv.l_cache"} {
		family, _, _ := strings.Cut(key, ".")
		raw := write(t, synth.Small(family), gguf.F32, 1)
		at := bytes.Index(raw, []byte(key)) + len(key)
		wide := binary.LittleEndian.AppendUint32(slices.Clone(raw[:at]), 10) // uint64
		wide = append(binary.LittleEndian.AppendUint64(wide, 1<<60), raw[at+8:]...)
		f, err := gguf.Parse(append(wide, make([]byte, 64)...)) // tensors may begin later
		if err != nil {
			t.Fatal(err)
		}
		want := key + " is 1152921504606846976, outside 1.."
		if _, err := modelfile.Load(f); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	raw := write(t, synth.Small("qwen35"), gguf.F32, 1)
	for _, name := range []string{"blk.0.ssm_a", "blk.0.ssm_dt.bias", "blk.0.ssm_conv1d.weight"} {
		f, err := gguf.Parse(slices.Clone(raw))
		if err != nil {
			t.Fatal(err)
		}
		tensor, _ := f.Tensor(name)
		binary.LittleEndian.PutUint32(tensor.Data[4:], math.Float32bits(float32(math.NaN())))
		if _, err := modelfile.Load(f); err == nil || !strings.Contains(err.Error(), "tensor "+name+" holds NaN at 1") {
			t.Errorf("NaN in %s: %v", name, err)
		}
	}
}

// TestMissingParts checks that errors name a missing tensor, for each tensor of a layer in each
// family.
func TestMissingParts(t *testing.T) {
	for _, family := range synth.Families() {
		raw := write(t, synth.Small(family), gguf.F32, 1)
		f, err := gguf.Parse(raw)
		if err != nil {
			t.Fatal(err)
		}
		for _, tensor := range f.Tensors() {
			if tensor.Name == model.HeadTensor || !strings.HasPrefix(tensor.Name, "blk.1.") ||
				family == "gemma4" && tensor.Name == "blk.1.attn_v.weight" { // its values are then the keys
				continue
			}
			other := strings.Replace(tensor.Name, "blk.1.", "blk.7.", 1)
			damaged, err := gguf.Parse(bytes.Replace(raw, []byte(tensor.Name), []byte(other), 1))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := modelfile.Load(damaged); err == nil || !strings.Contains(err.Error(), tensor.Name) {
				t.Errorf("%s without %s: %v", family, tensor.Name, err)
			}
		}
	}
}

// TestWrongSinks checks the error for fewer sinks than heads.
func TestWrongSinks(t *testing.T) {
	raw := write(t, synth.Small("gpt-oss"), gguf.F32, 1)
	name := "blk.1.attn_sinks.weight"
	f, err := gguf.Parse(patched(t, raw, name, 7)) // behind the number of dimensions is the first
	if err != nil {
		t.Fatal(err)
	}
	if _, err := modelfile.Load(f); err == nil || !strings.Contains(err.Error(), name) ||
		!strings.Contains(err.Error(), "[7]") {
		t.Errorf("seven sinks for eight heads: %v", err)
	}
}

// TestPurpose checks that errors name projectors and adapters as such, and that the error for an
// unknown architecture lists the known ones.
func TestPurpose(t *testing.T) {
	for want, set := range map[string]func(*gguf.Writer){
		"mmproj":                  func(w *gguf.Writer) { w.SetString("general.architecture", "clip") },
		"adapter (lora)":          func(w *gguf.Writer) { w.SetString("adapter.type", "lora") },
		`architecture "mamba" is`: func(w *gguf.Writer) { w.SetString("general.architecture", "mamba") },
		"has no general.arch":     func(w *gguf.Writer) { w.SetString("general.name", "a") },
		"gpt-oss":                 func(w *gguf.Writer) { w.SetString("general.architecture", "rwkv") },
	} {
		var out bytes.Buffer
		w := gguf.NewWriter(&out)
		set(w)
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		f, err := gguf.Parse(out.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		report, err := modelfile.Inspect(f, func(*model.Model) (modelfile.Memory, []error) {
			return modelfile.Memory{},
				nil
		})
		if err != nil || !strings.Contains(report.Refused, want) {
			t.Errorf("%q, %v; want it to say %q", report.Refused, err, want)
		}
	}
}

// TestNoExperts checks that a count of 0 experts means a model without experts.
func TestNoExperts(t *testing.T) {
	raw := write(t, synth.Small("llama"), gguf.F32, 1)
	text := func(b []byte, s string) []byte {
		return append(binary.LittleEndian.AppendUint64(b, uint64(len(s))), s...)
	}
	more := append(text(nil, "llama.expert_count"), 4, 0, 0, 0, 0, 0, 0, 0)
	more = text(append(text(more, "x.y"), 8, 0, 0, 0), "7 bytes") // together 64 bytes, which keeps the alignment
	const keysAt, end = 16, 24
	raw = slices.Concat(raw[:end], more, raw[end:])
	binary.LittleEndian.PutUint64(raw[keysAt:], binary.LittleEndian.Uint64(raw[keysAt:])+2)
	f, err := gguf.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	if m, err := modelfile.Load(f); err != nil || m.Experts.Count != 0 {
		t.Errorf("%v, want a model without experts", err)
	}
}

// TestAllReasons checks that Inspect reports all errors of a file, also after an unsupported tensor
// type.
func TestAllReasons(t *testing.T) {
	raw := write(t, synth.Small("gemma3"), gguf.F32, 1)
	for name, other := range map[string]string{"blk.1.attn_q.weight": "old.9.attn_q.weight",
		"blk.0.ffn_up.weight": "old.9.ffn_up.weight"} {
		raw = bytes.ReplaceAll(raw, []byte(name), []byte(other))
	}
	at := bytes.Index(raw, []byte("blk.0.attn_k.weight")) + len("blk.0.attn_k.weight") + 4 + 2*8
	binary.LittleEndian.PutUint32(raw[at:], 99)
	lying := patched(t, patched(t, raw, "gemma3.attention.sliding_window", 0), "gemma3.context_length", 0)
	for _, c := range []struct {
		raw  []byte
		want []string
	}{
		{raw, []string{"blk.1.attn_q.weight", "blk.0.ffn_up.weight", `type 99 of tensor "blk.0.attn_k.weight"`}},
		{lying, []string{"sliding_window is 0", "context_length is 0", "type 99"}},
	} {
		path := filepath.Join(t.TempDir(), "model.gguf")
		if err := os.WriteFile(path, c.raw, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := gguf.Open(path); err == nil || !strings.Contains(err.Error(), "blk.0.attn_k.weight") ||
			!strings.Contains(err.Error(), "q4_k") {
			t.Errorf("opened for reading: %v, want the tensor, its type and those that are read", err)
		}
		f, err := gguf.Look(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		report, err := modelfile.Inspect(f, func(*model.Model) (modelfile.Memory, []error) {
			return modelfile.Memory{},
				nil
		})
		if err != nil || len(report.Reasons) != len(c.want) || report.Refused != report.Reasons[0] {
			t.Errorf("%v: %q", err, report.Reasons)
		}
		for _, want := range c.want {
			if !strings.Contains(strings.Join(report.Reasons, "\n"), want) {
				t.Errorf("%q do not say %q", report.Reasons, want)
			}
		}
	}
}

// FuzzConfigs changes one number in a file of a family. Inspect must return a report with a reason
// of one line, or with none.
func FuzzConfigs(f *testing.F) {
	families := synth.Families()
	raws := make([][]byte, len(families))
	for i, family := range families {
		raws[i] = write(f, synth.Small(family), gguf.F32, 1)
		f.Add(uint8(i), uint8(3), uint32(0))
		f.Add(uint8(i), uint8(8), uint32(math.MaxUint32))
		f.Add(uint8(i), uint8(12), uint32(1000))
	}
	f.Fuzz(func(t *testing.T, family, key uint8, bits uint32) {
		raw := raws[int(family)%len(raws)]
		file, err := gguf.Parse(raw)
		if err != nil {
			t.Fatal(err)
		}
		var keys []string
		for _, k := range file.Keys() {
			if strings.HasPrefix(k, file.Architecture()+".") && k != file.Architecture()+".rope.scaling.type" {
				keys = append(keys, k)
			}
		}
		if file, err = gguf.Parse(patched(t, raw, keys[int(key)%len(keys)], bits)); err != nil {
			return
		}
		report, err := modelfile.Inspect(file, func(*model.Model) (modelfile.Memory,
			[]error) {
			return modelfile.Memory{}, nil
		})
		if err != nil || strings.Contains(report.Refused, "\n") {
			t.Errorf("%v, %q", err, report.Refused)
		}
	})
}

// TestTooManyTokens checks a vocabulary with more tokens than the embedding has rows, a vocabulary
// of a million tokens, and impossible groups of experts.
func TestTooManyTokens(t *testing.T) {
	for _, c := range []struct {
		family, key string
		value       uint32
		want        string
	}{
		{"llama", "token_embd.weight", 0, ""},
		{"deepseek2", "deepseek2.expert_group_count", 3, "3 groups"},
	} {
		raw := write(t, synth.Small(c.family), gguf.F32, 1)
		if c.want == "" {
			f, err := gguf.Parse(raw)
			if err != nil {
				t.Fatal(err)
			}
			n := f.Count("tokenizer.ggml.tokens")
			at := bytes.Index(raw, []byte(c.key)) + len(c.key) + 4 + 8 // its second dimension
			binary.LittleEndian.PutUint64(raw[at:], uint64(n-8))
			c.want = fmt.Sprintf("%d tokens, but token_embd.weight has %d rows", n, n-8)
		} else {
			raw = patched(t, raw, c.key, c.value)
		}
		f, err := gguf.Parse(raw)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := arch.ConfigOf(f); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
	many := synth.Small("gemma3")
	many.Vocab = 1_000_000
	if err := arch.Check(many); err == nil || !strings.Contains(err.Error(), "the vocabulary size is 1000000") {
		t.Errorf("a million tokens: %v", err)
	}
}
