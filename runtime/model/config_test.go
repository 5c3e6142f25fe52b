package model

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"sandwich/runtime/gguf"
)

// parameters counts the elements that a configuration's published parameter count counts.
func parameters(c Config) (n int64) {
	for _, s := range c.tensors() {
		if s.fixed == nil {
			n += int64(s.dims[0]) * int64(s.rows())
		}
	}
	return n
}

// TestPresets compares the presets with the parameter counts of the real checkpoints, an
// independent sum over the same shapes.
func TestPresets(t *testing.T) {
	published := map[string]int64{
		"llama-160m": 162_417_408, "tinyllama-1.1b": 1_100_048_384, "llama-3.2-1b": 1_235_814_400,
		"llama-3.2-3b": 3_212_749_824,
		"llama-3.1-8b": 8_030_261_248, "qwen3-0.6b": 596_049_920, "qwen3-4b": 4_022_468_096,
		"qwen3-30b-a3b": 30_532_122_624,
		"llama-1.3b":    1_345_423_360,
		"gemma2-2b":     2_614_341_888, "gemma3-1b": 999_885_952, "gpt-oss-20b": 20_914_757_184,
		"phi-3-mini": 3_821_079_552, "mixtral-8x7b": 46_702_792_704, "qwen1.5-moe-a2.7b": 14_315_784_192,
		"smollm3-3b": 3_075_098_624, "granite-3.1-2b": 2_533_531_648, "granite-3.1-1b-a400m": 1_334_628_352,
		"olmo2-1b": 1_484_916_736, "olmo3-7b": 7_298_011_136,
		// biases, which a file may lack
		"glm4-9b":        9_400_279_040 - 40*(4096+2*256),
		"ministral-3-3b": 3_429_006_336, // "3.4B"
		// "5.1B" with what sees and hears
		"gemma4-e2b":     4_628_569_344,
		"gemma4-26b-a4b": 25_233_137_920,                                                          // "25.2B"
		"lfm2-1.2b":      1_170_340_608, "qwen3.5-0.8b": 752_393_024, "qwen3.5-4b": 4_205_751_296, // texts alone
		"qwen3.5-35b-a3b": 34_660_610_688, "qwen3-next-80b-a3b": 79_674_391_296, // "35B", "80B"
		"qwen3-next-1b":    1_095_881_600, // of our own
		"deepseek-v2-lite": 15_706_484_224, "llama4-scout": 107_769_861_120,
		"bert-base":            109_482_240 - (768+1)*768, // the pooler, which no embedding uses
		"qwen3-embedding-0.6b": 595_776_512, "nomic-embed-text-v1.5": 136_731_648,
		"embeddinggemma-300m": 302_863_104 + 2*768*3072, // and the products behind pooling
	}
	for _, name := range PresetNames() {
		c, err := Preset(strings.ToUpper(name))
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Check(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if got := parameters(c); got != published[name] {
			t.Errorf("%s has %d parameters, the published model %d", name, got, published[name])
		}
		for _, typ := range allTypes {
			s, err := c.Shape(Uniform(typ))
			if err == nil {
				err = s.Check()
			}
			if err != nil {
				t.Errorf("%s %s: %v", name, typ, err)
			}
		}
	}
	if len(published) != len(PresetNames()) {
		t.Errorf("%d presets, %d published counts", len(PresetNames()), len(published))
	}
	if _, err := Preset("gpt-5"); err == nil || !strings.Contains(err.Error(), "tinyllama-1.1b") {
		t.Errorf("unknown preset: %v", err)
	}
}

// TestTypeFallback: rows that are no whole blocks take a simpler type.
func TestTypeFallback(t *testing.T) {
	c, err := Preset("llama-1.3b") // ffn 5504 is no multiple of 256
	if err != nil {
		t.Fatal(err)
	}
	s, err := c.Shape(Uniform(gguf.Q4_K))
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range s.Weights {
		want := "q4_k"
		if w.Role == "down" {
			want = "q5_0"
		}
		if w.Type != want {
			t.Errorf("%s is %s, want %s", w.Role, w.Type, want)
		}
	}
}

// TestFromHF reads configurations as the Hugging Face hub has them.
func TestFromHF(t *testing.T) {
	for preset, text := range map[string]string{
		"llama-3.2-1b": `{"architectures":["LlamaForCausalLM"],"attention_bias":false,"head_dim":64,"hidden_act":"silu","hidden_size":2048,
			"intermediate_size":8192,"max_position_embeddings":131072,"mlp_bias":false,"model_type":"llama","num_attention_heads":32,
			"num_hidden_layers":16,"num_key_value_heads":8,"rms_norm_eps":1e-05,"rope_scaling":{"factor":32.0,"high_freq_factor":4.0,
			"low_freq_factor":1.0,"original_max_position_embeddings":8192,"rope_type":"llama3"},"rope_theta":500000.0,
			"tie_word_embeddings":true,"torch_dtype":"bfloat16","vocab_size":128256}`,
		"qwen3-0.6b": `{"model_type":"qwen3","attention_bias":false,"head_dim":128,"hidden_act":"silu","hidden_size":1024,"intermediate_size":3072,
			"max_position_embeddings":40960,"num_attention_heads":16,"num_hidden_layers":28,"num_key_value_heads":8,"rms_norm_eps":1e-06,
			"rope_parameters":{"rope_type":"default","rope_theta":1000000},"sliding_window":null,"tie_word_embeddings":true,"dtype":"bfloat16",
			"use_sliding_window":false,"vocab_size":151936}`,
		"qwen3-30b-a3b": `{"model_type":"qwen3_moe","decoder_sparse_step":1,"head_dim":128,"hidden_act":"silu","hidden_size":2048,"intermediate_size":6144,
			"max_position_embeddings":40960,"mlp_only_layers":[],"moe_intermediate_size":768,"num_attention_heads":32,"num_experts":128,
			"num_experts_per_tok":8,"num_hidden_layers":48,"num_key_value_heads":4,"rms_norm_eps":1e-06,"rope_scaling":null,"rope_theta":1000000.0,
			"sliding_window":null,"tie_word_embeddings":false,"torch_dtype":"bfloat16","use_sliding_window":false,"vocab_size":151936}`,
		"gemma2-2b": `{"model_type":"gemma2","attention_bias":false,"attn_logit_softcapping":50.0,"final_logit_softcapping":30.0,"head_dim":256,
			"hidden_act":"gelu_pytorch_tanh","hidden_activation":"gelu_pytorch_tanh","hidden_size":2304,"intermediate_size":9216,
			"max_position_embeddings":8192,"num_attention_heads":8,"num_hidden_layers":26,"num_key_value_heads":4,"query_pre_attn_scalar":256,
			"rms_norm_eps":1e-06,"rope_theta":10000.0,"sliding_window":4096,"torch_dtype":"bfloat16","vocab_size":256000}`,
		"gemma3-1b": `{"model_type":"gemma3_text","attention_bias":false,"attn_logit_softcapping":null,"final_logit_softcapping":null,"head_dim":256,
			"hidden_activation":"gelu_pytorch_tanh","hidden_size":1152,"intermediate_size":6912,"max_position_embeddings":32768,
			"num_attention_heads":4,"num_hidden_layers":26,"num_key_value_heads":1,"query_pre_attn_scalar":256,"rms_norm_eps":1e-06,
			"rope_local_base_freq":10000,"rope_scaling":null,"rope_theta":1000000,"sliding_window":512,"sliding_window_pattern":6,
			"torch_dtype":"bfloat16","vocab_size":262144}`,
		"gpt-oss-20b": `{"model_type":"gpt_oss","attention_bias":true,"head_dim":64,"hidden_act":"silu","hidden_size":2880,"intermediate_size":2880,
			"layer_types":["sliding_attention","full_attention","sliding_attention","full_attention"],"max_position_embeddings":131072,
			"num_attention_heads":64,"num_experts_per_tok":4,"num_hidden_layers":24,"num_key_value_heads":8,"num_local_experts":32,
			"rms_norm_eps":1e-05,"rope_scaling":{"beta_fast":32.0,"beta_slow":1.0,"factor":32.0,"original_max_position_embeddings":4096,
			"rope_type":"yarn"},"rope_theta":150000,"sliding_window":128,"tie_word_embeddings":false,"vocab_size":201088}`,
		"phi-3-mini": `{"model_type":"phi3","hidden_act":"silu","hidden_size":3072,"intermediate_size":8192,"max_position_embeddings":4096,
			"num_attention_heads":32,"num_hidden_layers":32,"num_key_value_heads":32,"original_max_position_embeddings":4096,"rms_norm_eps":1e-05,
			"rope_scaling":null,"rope_theta":10000.0,"sliding_window":2047,"tie_word_embeddings":false,"torch_dtype":"bfloat16","vocab_size":32064}`,
		"granite-3.1-2b": `{"model_type":"granite","attention_bias":false,"attention_multiplier":0.015625,"embedding_multiplier":12.0,"hidden_act":"silu",
			"hidden_size":2048,"intermediate_size":8192,"logits_scaling":8.0,"max_position_embeddings":131072,"num_attention_heads":32,
			"num_hidden_layers":40,"num_key_value_heads":8,"residual_multiplier":0.22,"rms_norm_eps":1e-05,"rope_theta":5000000.0,
			"tie_word_embeddings":true,"torch_dtype":"bfloat16","vocab_size":49155}`,
		"glm4-9b": `{"model_type":"glm4","attention_bias":true,"head_dim":128,"hidden_act":"silu","hidden_size":4096,"intermediate_size":13696,
			"max_position_embeddings":32768,"num_attention_heads":32,"num_hidden_layers":40,"num_key_value_heads":2,"partial_rotary_factor":0.5,
			"rms_norm_eps":1e-05,"rope_theta":10000.0,"tie_word_embeddings":false,"torch_dtype":"bfloat16","vocab_size":151552}`,
		"qwen1.5-moe-a2.7b": `{"model_type":"qwen2_moe","decoder_sparse_step":1,"hidden_act":"silu","hidden_size":2048,"intermediate_size":5632,
			"max_position_embeddings":8192,"moe_intermediate_size":1408,"norm_topk_prob":false,"num_attention_heads":16,"num_experts":60,
			"num_experts_per_tok":4,"num_hidden_layers":24,"num_key_value_heads":16,"rms_norm_eps":1e-06,"rope_theta":1000000.0,
			"shared_expert_intermediate_size":5632,"sliding_window":32768,"tie_word_embeddings":false,"torch_dtype":"bfloat16",
			"use_sliding_window":false,"vocab_size":151936}`,
		"olmo3-7b": `{"model_type":"olmo3","attention_bias":false,"hidden_act":"silu","hidden_size":4096,"intermediate_size":11008,
			"max_position_embeddings":65536,"num_attention_heads":32,"num_hidden_layers":32,"num_key_value_heads":32,"rms_norm_eps":1e-06,
			"rope_scaling":{"attention_factor":1.2079441541679836,"factor":8.0,"original_max_position_embeddings":8192,"rope_type":"yarn"},
			"rope_theta":500000,"sliding_window":4096,"tie_word_embeddings":false,"torch_dtype":"bfloat16","vocab_size":100278}`,
		"mixtral-8x7b": `{"model_type":"mixtral","hidden_act":"silu","hidden_size":4096,"intermediate_size":14336,"max_position_embeddings":32768,
			"num_attention_heads":32,"num_experts_per_tok":2,"num_hidden_layers":32,"num_key_value_heads":8,"num_local_experts":8,
			"rms_norm_eps":1e-05,"rope_theta":1000000.0,"sliding_window":null,"tie_word_embeddings":false,"torch_dtype":"bfloat16","vocab_size":32000}`,
		"deepseek-v2-lite": `{"model_type":"deepseek_v2","attention_bias":false,"first_k_dense_replace":1,"hidden_act":"silu","hidden_size":2048,
			"intermediate_size":10944,"kv_lora_rank":512,"max_position_embeddings":163840,"moe_intermediate_size":1408,"moe_layer_freq":1,
			"n_group":1,"n_routed_experts":64,"n_shared_experts":2,"norm_topk_prob":false,"num_attention_heads":16,"num_experts_per_tok":6,
			"num_hidden_layers":27,"num_key_value_heads":16,"q_lora_rank":null,"qk_nope_head_dim":128,"qk_rope_head_dim":64,"rms_norm_eps":1e-06,
			"rope_scaling":{"beta_fast":32,"beta_slow":1,"factor":40,"mscale":0.707,"mscale_all_dim":0.707,
			"original_max_position_embeddings":4096,"type":"yarn"},"rope_theta":10000,"routed_scaling_factor":1.0,"scoring_func":"softmax",
			"tie_word_embeddings":false,"topk_group":1,"torch_dtype":"bfloat16","v_head_dim":128,"vocab_size":102400}`,
		"tinyllama-1.1b": `{"model_type":"llama","hidden_act":"silu","hidden_size":2048,"intermediate_size":5632,"max_position_embeddings":2048,
			"num_attention_heads":32,"num_hidden_layers":22,"num_key_value_heads":4,"rms_norm_eps":1e-05,"rope_scaling":null,
			"tie_word_embeddings":false,"torch_dtype":"bfloat16","vocab_size":32000}`,
	} {
		c, typ, err := FromHF([]byte(text))
		if err != nil {
			t.Errorf("%s: %v", preset, err)
			continue
		}
		want, _ := Preset(preset)
		got, gotErr := c.Shape(Uniform(typ))
		shape, wantErr := want.Shape(Uniform(gguf.BF16))
		if gotErr != nil || wantErr != nil || got.Digest() != shape.Digest() || !reflect.DeepEqual(got.Values,
			shape.Values) {
			t.Errorf("%s: %+v (%v), want %+v (%v)", preset, got, gotErr, shape, wantErr)
		}
		if c.RopeBase != want.RopeBase || c.Eps != want.Eps || (c.Llama3 == nil) != (want.Llama3 == nil) {
			t.Errorf("%s: %+v, want %+v", preset, c, want)
		}
	}
}

// TestFromHFRefuses covers what this program would run wrongly.
func TestFromHFRefuses(t *testing.T) {
	const sizes = `"hidden_size":256,"intermediate_size":512,"max_position_embeddings":512,"num_attention_heads":8,"num_hidden_layers":2,"rms_norm_eps":1e-5,"vocab_size":320`
	for text, want := range map[string]string{
		`{`:                                    "no valid config.json",
		`{"model_type":"gemma",` + sizes + `}`: `"gemma"`,
		`{"model_type":"llama"}`:               "hidden size is 0",
		`{"model_type":"llama","hidden_size":"x"}`:                              "no valid config.json",
		`{"model_type":"llama","hidden_act":"gelu",` + sizes + `}`:              "gelu",
		`{"model_type":"llama","attention_bias":true,` + sizes + `}`:            "attention_bias",
		`{"model_type":"mistral","sliding_window":128,` + sizes + `}`:           "sliding",
		`{"model_type":"qwen3","rope_scaling":{"type":"yarn"},` + sizes + `}`:   "yarn",
		`{"model_type":"llama","rope_scaling":{"type":"llama3"},` + sizes + `}`: "no Llama 3 rule",
		`{"model_type":"qwen3_moe","decoder_sparse_step":2,` + sizes + `}`:      "dense layers",
		`{"model_type":"qwen3_moe","norm_topk_prob":false,` + sizes + `}`:       "norm_topk_prob",
	} {
		if c, _, err := FromHF([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60s: %+v, %v; want an error about %s", text, c, err, want)
		}
	}
	if _, _, err := FromHF([]byte(`{"model_type":"llama",` + sizes + `}`)); err != nil {
		t.Errorf("the sizes alone: %v", err)
	}
}

// TestShapeOfReference reads the reference models, all types and architectures, and looks at the
// matrices of one by hand.
func TestShapeOfReference(t *testing.T) {
	dir := os.Getenv("SANDWICH_TESTDATA")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "shared")
	}
	files, _ := filepath.Glob(filepath.Join(dir, "parity", "models", "*.gguf"))
	if len(files) == 0 {
		t.Skipf("no reference models under %s: set SANDWICH_TESTDATA", dir)
	}
	for _, path := range files {
		f, err := gguf.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		s, err := ShapeOf(f)
		if err == nil {
			err = s.Check()
		}
		if err != nil || s.Vocab != 320 || s.Layers != 2 {
			t.Errorf("%s: %+v, %v", filepath.Base(path), s, err)
		}
		if filepath.Base(path) == "qwen3moe-q8_0.gguf" {
			var gates int
			for _, w := range s.Weights {
				if w.Role == "gate" {
					gates += w.Count
					if w.N != 128 || w.K != 256 || w.Type != "q8_0" {
						t.Errorf("gate is %+v", w)
					}
				}
			}
			if gates != 2*8 {
				t.Errorf("%d gates, want 8 experts in 2 layers", gates)
			}
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestShapeOfRefuses takes a tensor away and changes a dimension.
func TestShapeOfRefuses(t *testing.T) {
	c := small("llama")
	raw := synth(t, c, gguf.F32, 1)
	for from, to := range map[string]string{"blk.1.ffn_up.weight": "blk.1.ffn_xx.weight",
		"llama.feed_forward_length": "llama.feed_forward_xength"} {
		f, err := gguf.Parse([]byte(strings.Replace(string(raw), from, to, 1)))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := ShapeOf(f); err == nil || !strings.Contains(err.Error(), from) {
			t.Errorf("without %s: %v", from, err)
		}
	}
	if _, err := archOf("mamba"); !errors.Is(err, ErrUnsupported) {
		t.Errorf("unknown architecture: %v", err)
	}
}

// TestConfigRoundTrip: a file says of its configuration what the configuration said.
func TestConfigRoundTrip(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"llama":    func(*Config) {},
		"qwen2":    func(c *Config) { c.RopeScale = 0.25 },
		"qwen3":    func(c *Config) { c.RopeDim, c.Tied = 16, true },
		"qwen3moe": func(c *Config) { c.RopeBase = 5e5 },
	} {
		want := small(name)
		change(&want)
		f, err := gguf.Parse(synth(t, want, gguf.F32, 1))
		if err != nil {
			t.Fatal(err)
		}
		got, err := ConfigOf(f)
		if err != nil {
			t.Fatal(err)
		}
		want.Name, want.Eps = got.Name, float64(float32(want.Eps))
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
}

// TestRegisterTwice: two files of one name are a mistake that a program shows when it starts.
func TestRegisterTwice(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("llama was registered twice")
		}
	}()
	Register(Architecture{Name: "llama"})
}
