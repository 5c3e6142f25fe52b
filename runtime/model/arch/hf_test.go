package arch_test

import (
	"reflect"
	"strings"
	"testing"

	"sandwich/runtime/gguf"
	"sandwich/runtime/model"
	"sandwich/runtime/model/arch"
	"sandwich/runtime/model/synth"
)

// hubConfigs are configurations as the Hugging Face hub has them, by the preset that they are.
var hubConfigs = map[string]string{
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
	"gemma4-e2b": `{"model_type":"gemma4","architectures":["Gemma4ForConditionalGeneration"],"tie_word_embeddings":true,"dtype":"bfloat16",
		"vision_config":{"hidden_size":768},"text_config":{"model_type":"gemma4_text","attention_bias":false,"attention_k_eq_v":false,
		"enable_moe_block":false,"final_logit_softcapping":30.0,"global_head_dim":512,"head_dim":256,"hidden_activation":"gelu_pytorch_tanh",
		"hidden_size":1536,"hidden_size_per_layer_input":256,"intermediate_size":6144,"layer_types":[` +
		strings.Repeat(`"sliding_attention","sliding_attention","sliding_attention","sliding_attention","full_attention",`, 6) +
		`"sliding_attention","sliding_attention","sliding_attention","sliding_attention","full_attention"],
		"max_position_embeddings":131072,"num_attention_heads":8,"num_hidden_layers":35,"num_key_value_heads":1,"num_kv_shared_layers":20,
		"rms_norm_eps":1e-06,"rope_parameters":{"full_attention":{"partial_rotary_factor":0.25,"rope_theta":1000000.0,
		"rope_type":"proportional"},"sliding_attention":{"rope_theta":10000.0,"rope_type":"default"}},"sliding_window":512,
		"use_double_wide_mlp":true,"vocab_size":262144,"vocab_size_per_layer_input":262144}}`,
	"gemma4-26b-a4b": `{"model_type":"gemma4","text_config":{"model_type":"gemma4_text","attention_k_eq_v":true,"enable_moe_block":true,
		"final_logit_softcapping":30.0,"head_dim":256,"hidden_activation":"gelu_pytorch_tanh","hidden_size":2816,
		"hidden_size_per_layer_input":0,"intermediate_size":2112,"max_position_embeddings":262144,"moe_intermediate_size":704,
		"num_attention_heads":16,"num_experts":128,"num_global_key_value_heads":2,"num_hidden_layers":30,"num_key_value_heads":8,
		"rms_norm_eps":1e-06,"sliding_window":1024,"top_k_experts":8,"vocab_size":262144}}`,
	"llama4-scout": `{"model_type":"llama4","text_config":{"model_type":"llama4_text","attention_bias":false,"attention_chunk_size":8192,
		"attn_scale":0.1,"attn_temperature_tuning":4,"floor_scale":8192,"head_dim":128,"hidden_act":"silu","hidden_size":5120,
		"interleave_moe_layer_step":1,"intermediate_size":8192,"intermediate_size_mlp":16384,"max_position_embeddings":1048576,
		"no_rope_layers":[],"num_attention_heads":40,"num_experts_per_tok":1,"num_hidden_layers":48,"num_key_value_heads":8,
		"num_local_experts":16,"rms_norm_eps":1e-05,"rope_scaling":null,"rope_theta":500000.0,"torch_dtype":"bfloat16",
		"use_qk_norm":true,"vocab_size":202048}}`,
	"ministral-3-3b": `{"model_type":"mistral3","dtype":"bfloat16","text_config":{"model_type":"ministral3","head_dim":128,"hidden_act":"silu",
		"hidden_size":3072,"intermediate_size":9216,"max_position_embeddings":262144,"num_attention_heads":32,"num_hidden_layers":26,
		"num_key_value_heads":8,"rms_norm_eps":1e-05,"rope_parameters":{"beta_fast":32.0,"beta_slow":1.0,"factor":16.0,
		"llama_4_scaling_beta":0.1,"mscale":1.0,"mscale_all_dim":1.0,"original_max_position_embeddings":16384,"rope_theta":1000000.0,
		"rope_type":"yarn","type":"yarn"},"sliding_window":null,"tie_word_embeddings":true,"vocab_size":131072}}`,
	"qwen3.5-0.8b": `{"model_type":"qwen3_5","tie_word_embeddings":true,"text_config":{"model_type":"qwen3_5_text","attention_bias":false,
		"attn_output_gate":true,"dtype":"bfloat16","full_attention_interval":4,"head_dim":256,"hidden_act":"silu","hidden_size":1024,
		"intermediate_size":3584,"linear_conv_kernel_dim":4,"linear_key_head_dim":128,"linear_num_key_heads":16,
		"linear_num_value_heads":16,"linear_value_head_dim":128,"max_position_embeddings":262144,"mtp_num_hidden_layers":1,
		"num_attention_heads":8,"num_hidden_layers":24,"num_key_value_heads":2,"rms_norm_eps":1e-06,"rope_parameters":
		{"mrope_interleaved":true,"mrope_section":[11,11,10],"partial_rotary_factor":0.25,"rope_theta":10000000,"rope_type":"default"},
		"layer_types":[` + strings.Repeat(`"linear_attention","linear_attention","linear_attention","full_attention",`, 5) +
		`"linear_attention","linear_attention","linear_attention","full_attention"],"vocab_size":248320}}`,
	"qwen3.5-35b-a3b": `{"model_type":"qwen3_5_moe","text_config":{"model_type":"qwen3_5_moe_text","head_dim":256,"hidden_act":"silu",
		"hidden_size":2048,"linear_conv_kernel_dim":4,"linear_key_head_dim":128,"linear_num_key_heads":16,"linear_num_value_heads":32,
		"linear_value_head_dim":128,"max_position_embeddings":262144,"moe_intermediate_size":512,"num_attention_heads":16,
		"num_experts":256,"num_experts_per_tok":8,"num_hidden_layers":40,"num_key_value_heads":2,"rms_norm_eps":1e-06,
		"rope_parameters":{"rope_theta":10000000,"rope_type":"default"},"shared_expert_intermediate_size":512,"vocab_size":248320}}`,
	"qwen3-next-80b-a3b": `{"model_type":"qwen3_next","decoder_sparse_step":1,"full_attention_interval":4,"head_dim":256,"hidden_act":"silu",
		"hidden_size":2048,"intermediate_size":5120,"linear_conv_kernel_dim":4,"linear_key_head_dim":128,"linear_num_key_heads":16,
		"linear_num_value_heads":32,"linear_value_head_dim":128,"max_position_embeddings":262144,"mlp_only_layers":[],
		"moe_intermediate_size":512,"norm_topk_prob":true,"num_attention_heads":16,"num_experts":512,"num_experts_per_tok":10,
		"num_hidden_layers":48,"num_key_value_heads":2,"partial_rotary_factor":0.25,"rms_norm_eps":1e-06,"rope_scaling":null,
		"rope_theta":10000000,"shared_expert_intermediate_size":512,"tie_word_embeddings":false,"torch_dtype":"bfloat16",
		"use_sliding_window":false,"vocab_size":151936}`,
	"lfm2-1.2b": `{"model_type":"lfm2","block_auto_adjust_ff_dim":true,"block_dim":2048,"block_ff_dim":12288,"block_ffn_dim_multiplier":1.0,
		"block_multiple_of":256,"conv_L_cache":3,"conv_bias":false,"full_attn_idxs":[2,5,8,10,12,14],"hidden_size":2048,
		"max_position_embeddings":128000,"norm_eps":1e-05,"num_attention_heads":32,"num_heads":32,"num_hidden_layers":16,
		"num_key_value_heads":8,"rope_theta":1000000.0,"torch_dtype":"bfloat16","vocab_size":65536}`,
	"lfm2-8b-a1b": `{"model_type":"lfm2_moe","conv_L_cache":3,"conv_bias":false,"hidden_size":2048,"intermediate_size":7168,"layer_types":[
		"conv","conv","full_attention","conv","conv","conv","full_attention","conv","conv","conv","full_attention","conv",
		"conv","conv","full_attention","conv","conv","conv","full_attention","conv","conv","full_attention","conv","conv"],
		"max_position_embeddings":128000,"moe_intermediate_size":1792,"norm_eps":1e-05,"norm_topk_prob":true,
		"num_attention_heads":32,"num_dense_layers":2,"num_experts":32,"num_experts_per_tok":4,"num_hidden_layers":24,
		"num_key_value_heads":8,"rope_theta":1000000.0,"routed_scaling_factor":1.0,"tie_embedding":true,
		"torch_dtype":"bfloat16","use_expert_bias":true,"vocab_size":65536}`,
	"tinyllama-1.1b": `{"model_type":"llama","hidden_act":"silu","hidden_size":2048,"intermediate_size":5632,"max_position_embeddings":2048,
		"num_attention_heads":32,"num_hidden_layers":22,"num_key_value_heads":4,"rms_norm_eps":1e-05,"rope_scaling":null,
		"tie_word_embeddings":false,"torch_dtype":"bfloat16","vocab_size":32000}`,
}

// TestGemma3Defaults reads the configuration of Gemma 3 4B, which leaves out fields of its text
// part.
func TestGemma3Defaults(t *testing.T) {
	c, typ, err := arch.FromHF([]byte(`{"model_type":"gemma3","text_config":{"hidden_size":2560,
		"intermediate_size":10240,"model_type":"gemma3_text","num_hidden_layers":34,
		"rope_scaling":{"factor":8.0,"rope_type":"linear"},"sliding_window":1024},"torch_dtype":"bfloat16"}`), nil)
	if err != nil {
		t.Fatal(err)
	}
	want := model.Dims{Hidden: 2560, Layers: 34, Heads: 8, KVHeads: 4, HeadDim: 256, FFN: 10240, Vocab: 262208,
		Context: 131072}
	if !reflect.DeepEqual(c.Dims, want) || typ != gguf.BF16 || !c.Tied || c.Eps != 1e-6 || c.RopeBase != 1e6 ||
		c.Windows.Size != 1024 || c.Windows.Base != 10000 || c.Scales.Attn != 0 {
		t.Errorf("%+v of %s, want %+v", c, typ, want)
	}
}

// TestFromHF reads configurations as the Hugging Face hub has them.
func TestFromHF(t *testing.T) {
	for preset, text := range hubConfigs {
		c, typ, err := arch.FromHF([]byte(text), nil)
		if err != nil {
			t.Errorf("%s: %v", preset, err)
			continue
		}
		want, _ := synth.Preset(preset)
		got, gotErr := synth.Shape(c, synth.Uniform(typ))
		shape, wantErr := synth.Shape(want, synth.Uniform(gguf.BF16))
		if gotErr != nil || wantErr != nil || got.Digest() != shape.Digest() || !reflect.DeepEqual(got.Values,
			shape.Values) {
			t.Errorf("%s: %+v (%v), want %+v (%v)", preset, got, gotErr, shape, wantErr)
		}
		if c.RopeDim != want.RopeDim || c.AttnTemperature != want.AttnTemperature ||
			!reflect.DeepEqual(c.Yarn, want.Yarn) {
			t.Errorf("%s rotates %d by %+v, growing by %v", preset, c.RopeDim, c.Yarn, c.AttnTemperature)
		}
		if c.RopeBase != want.RopeBase || c.Eps != want.Eps || (c.Llama3 == nil) != (want.Llama3 == nil) {
			t.Errorf("%s: %+v, want %+v", preset, c, want)
		}
	}
}

// TestFromHFRefuses checks configurations that this program would run with wrong results.
func TestFromHFRefuses(t *testing.T) {
	const sizes = `"hidden_size":256,"intermediate_size":512,"max_position_embeddings":512,"num_attention_heads":8,"num_hidden_layers":2,"rms_norm_eps":1e-5,"vocab_size":320`
	const heads = `"head_dim":32,"num_key_value_heads":8`
	const dense = `"intermediate_size_mlp":512,` + heads + `,` + sizes
	for text, want := range map[string]string{
		`{`:                                    "invalid config.json",
		`{"model_type":"gemma",` + sizes + `}`: `"gemma"`,
		`{"model_type":"llama"}`:               "hidden size is 0",
		`{"model_type":"llama","hidden_size":"x"}`:                              "invalid config.json",
		`{"model_type":"llama","hidden_act":"gelu",` + sizes + `}`:              "gelu",
		`{"model_type":"llama","attention_bias":true,` + sizes + `}`:            "attention_bias",
		`{"model_type":"mistral","sliding_window":128,` + sizes + `}`:           "sliding",
		`{"model_type":"qwen3","rope_scaling":{"type":"yarn"},` + sizes + `}`:   "yarn",
		`{"model_type":"llama","rope_scaling":{"type":"llama3"},` + sizes + `}`: "invalid Llama 3 RoPE scaling",
		`{"model_type":"qwen3_moe","decoder_sparse_step":2,` + sizes + `}`:      "dense layers",
		`{"model_type":"qwen3_moe","norm_topk_prob":false,` + sizes + `}`:       "norm_topk_prob",

		`{"model_type":"qwen3_5","text_config":{"model_type":"qwen3_5_text",` + sizes +
			`}}`: "head_dim or num_key_value_heads",
		`{"model_type":"qwen3_5_text",` + heads + `,` + sizes +
			`}`: "0 value heads of size 0",
		`{"model_type":"qwen3_next",` + heads + `,` + sizes +
			`}`: "shared_expert_intermediate_size",
		`{"model_type":"qwen3_5_text","attn_output_gate":false,` + heads + `,` + sizes +
			`}`: "attn_output_gate",
		`{"model_type":"qwen3_5_text","full_attention_interval":-1,` + heads + `,` + sizes +
			`}`: "full_attention_interval",
		`{"model_type":"qwen3_5_text","layer_types":["linear_attention"],` + heads + `,` + sizes +
			`}`: "1 entries for 2 layers",
		`{"model_type":"qwen3_5_text","layer_types":["mamba","x"],` + heads + `,` + sizes + `}`: `"mamba"`,
		`{"model_type":"lfm2",` + sizes +
			`}`: "without layer_types",
		`{"model_type":"lfm2","full_attn_idxs":[1],"block_multiple_of":-3,` + sizes +
			`}`: "block_multiple_of",
		`{"model_type":"lfm2","full_attn_idxs":[1],"conv_bias":true,` + sizes + `}`: "conv_bias",
		`{"model_type":"lfm2","full_attn_idxs":[1],` + sizes +
			`}`: "conv_L_cache",
		`{"model_type":"lfm2_moe","norm_topk_prob":false,` + sizes + `}`: "norm_topk_prob",
		`{"model_type":"ministral3",` + heads + `,` + sizes +
			`}`: "rope_parameters",
		`{"model_type":"llama4_text",` + heads + `,` + sizes +
			`}`: "intermediate_size_mlp",
		`{"model_type":"llama4_text","attention_chunk_size":null,` + dense +
			`}`: "attention_chunk_size 0",
		`{"model_type":"llama4_text","use_qk_norm":false,` + dense +
			`}`: "use_qk_norm false with 0 experts",
		`{"model_type":"llama4_text","no_rope_layers":[1,0],` + dense +
			`}`: "no_rope_layers",
		`{"model_type":"llama4_text","attn_temperature_tuning":false,` + dense +
			`}`: "attn_temperature_tuning",
		`{"model_type":"llama4_text","interleave_moe_layer_step":2,"moe_layers":[0],` + dense + `}`: "moe_layers",
		`{"model_type":"gemma4_text","use_bidirectional_attention":"all",` + heads + `,` + sizes +
			`}`: "use_bidirectional_attention",
		`{"model_type":"gemma4_text",` + heads + `,` + sizes +
			`}`: "vocab_size_per_layer_input 262144",
		`{"model_type":"gemma4_text","rope_parameters":{"rope_theta":1e6},` + heads + `,` + sizes +
			`}`: "rope_parameters of",
		`{"tie_word_embeddings":true,"text_config":{"tie_word_embeddings":false}}`: "tie_word_embeddings true with false",
	} {
		if c, _, err := arch.FromHF([]byte(text), nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60s: %+v, %v; want an error about %s", text, c, err, want)
		}
	}
	if _, _, err := arch.FromHF([]byte(`{"model_type":"llama",`+sizes+`}`), nil); err != nil {
		t.Errorf("the sizes alone: %v", err)
	}
}
