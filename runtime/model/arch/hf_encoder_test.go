package arch_test

import (
	"io/fs"
	"reflect"
	"strings"
	"testing"

	"sandwich/runtime/gguf"
	"sandwich/runtime/model"
	"sandwich/runtime/model/arch"
	"sandwich/runtime/model/modelshape"
	"sandwich/runtime/model/synth"
)

// folder is a model's folder on the hub: files by their names.
type folder map[string]string

func (f folder) read(name string) ([]byte, error) {
	text, ok := f[name]
	if !ok {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return []byte(text), nil
}

// modulesOf are sentence-transformers' files of a model whose rows are pooled by a mode.
func modulesOf(mode string, dense ...string) folder {
	f := folder{"1_Pooling/config.json": `{"word_embedding_dimension":768,"pooling_mode_max_tokens":false,
		"pooling_mode_` + mode + `":true,"include_prompt":true}`}
	list := `[{"idx":0,"name":"0","path":"","type":"sentence_transformers.models.Transformer"},
		{"idx":1,"name":"1","path":"1_Pooling","type":"sentence_transformers.models.Pooling"}`
	for i, config := range dense {
		path := string(rune('2'+i)) + "_Dense"
		f[path+"/config.json"] = config
		list += `,{"path":"` + path + `","type":"sentence_transformers.models.Dense"}`
	}
	f["modules.json"] = list + `,{"path":"9_Normalize","type":"sentence_transformers.models.Normalize"}]`
	return f
}

const identity = `"bias":false,"activation_function":"torch.nn.modules.linear.Identity"}`

const qwenEmbedding = `{"architectures":["Qwen3ForCausalLM"],"model_type":"qwen3","attention_bias":false,"head_dim":128,
	"hidden_act":"silu","hidden_size":1024,"intermediate_size":3072,"max_position_embeddings":32768,"max_window_layers":28,
	"num_attention_heads":16,"num_hidden_layers":28,"num_key_value_heads":8,"rms_norm_eps":1e-06,"rope_scaling":null,
	"rope_theta":1000000,"sliding_window":null,"tie_word_embeddings":true,"torch_dtype":"bfloat16",
	"use_sliding_window":false,"vocab_size":151669}`

const bertBase = `{"architectures":["BertForMaskedLM"],"attention_probs_dropout_prob":0.1,"hidden_act":"gelu",
	"hidden_size":768,"intermediate_size":3072,"layer_norm_eps":1e-12,"max_position_embeddings":512,"model_type":"bert",
	"num_attention_heads":12,"num_hidden_layers":12,"pad_token_id":0,"position_embedding_type":"absolute",
	"type_vocab_size":2,"vocab_size":30522}`

const embeddingGemma = `{"_sliding_window_pattern":6,"architectures":["Gemma3TextModel"],"attention_bias":false,
	"attn_logit_softcapping":null,"dtype":"float32","final_logit_softcapping":null,"head_dim":256,
	"hidden_activation":"gelu_pytorch_tanh","hidden_size":768,"intermediate_size":1152,"max_position_embeddings":2048,
	"model_type":"gemma3_text","num_attention_heads":3,"num_hidden_layers":24,"num_key_value_heads":1,
	"query_pre_attn_scalar":256,"rms_norm_eps":1e-06,"rope_local_base_freq":10000.0,"rope_scaling":null,
	"rope_theta":1000000.0,"sliding_window":512,"use_bidirectional_attention":true,"vocab_size":262144}`

const nomicEmbed = `{"activation_function":"swiglu","architectures":["NomicBertModel"],"causal":false,
	"layer_norm_epsilon":1e-12,"max_trained_positions":2048,"mlp_fc1_bias":false,"mlp_fc2_bias":false,
	"model_type":"nomic_bert","n_embd":768,"n_head":12,"n_inner":3072,"n_layer":12,"n_positions":8192,"prenorm":false,
	"qkv_proj_bias":false,"rotary_emb_base":1000,"rotary_emb_fraction":1.0,"rotary_emb_interleaved":false,
	"rotary_emb_scale_base":null,"rotary_scaling_factor":null,"torch_dtype":"float32","type_vocab_size":2,
	"use_rms_norm":false,"vocab_size":30528}`

const nomicNew = `{"model_type":"nomic_bert","hidden_act":"silu","hidden_size":768,"intermediate_size":3072,
	"max_position_embeddings":2048,"num_attention_heads":12,"num_hidden_layers":12,
	"rope_parameters":{"rope_theta":1000,"rope_type":"default"},"vocab_size":30528}`

// TestFromHFEncoders reads published configurations with the files of sentence-transformers.
func TestFromHFEncoders(t *testing.T) {
	for _, c := range []struct {
		preset, text string
		readFile     folder
		pooling      model.Pooling
	}{
		{"bert-base", bertBase, nil, model.MeanPooling},
		{"bert-base", bertBase, modulesOf("cls_token"), model.FirstPooling},
		{"nomic-embed-text-v1.5", nomicEmbed, modulesOf("mean_tokens"), model.MeanPooling},
		{"nomic-embed-text-v1.5", nomicNew, nil, model.MeanPooling},
		{"qwen3-embedding-0.6b", qwenEmbedding, modulesOf("lasttoken"), model.LastPooling},
		{"embeddinggemma-300m", embeddingGemma, modulesOf("mean_tokens", `{"in_features":768,"out_features":3072,`+
			identity, `{"in_features":3072,"out_features":768,`+identity), model.MeanPooling},
	} {
		config, _, err := arch.FromHF([]byte(c.text), c.readFile.read)
		if err != nil {
			t.Errorf("%s: %v", c.preset, err)
			continue
		}
		want, _ := synth.Preset(c.preset)
		got, gotErr := synth.Shape(config, synth.Uniform(gguf.BF16))
		shape, wantErr := synth.Shape(want, synth.Uniform(gguf.BF16))
		if gotErr != nil || wantErr != nil || got.Digest() != shape.Digest() ||
			!reflect.DeepEqual(got.Values, shape.Values) {
			t.Errorf("%s: %+v (%v), want %+v (%v)", c.preset, got, gotErr, shape, wantErr)
		}
		want.Name, want.Pooling, want.Tied = config.Name, c.pooling, config.Tied
		if !reflect.DeepEqual(config, want) {
			t.Errorf("%s:\n%+v, want\n%+v", c.preset, config, want)
		}
	}
	if c, _, err := arch.FromHF([]byte(qwenEmbedding), folder{}.read); err != nil || c.Pooling != model.NoPooling {
		t.Errorf("without modules: %v, %v", c.Pooling, err)
	}
	named := modulesOf("")
	named["1_Pooling/config.json"] = `{"embedding_dimension":1024,"pooling_mode":"cls","include_prompt":true}`
	if c, _, err := arch.FromHF([]byte(qwenEmbedding), named.read); err != nil || c.Pooling != model.FirstPooling {
		t.Errorf("a mode by name: %v, %v", c.Pooling, err)
	}
}

const rerankerM3 = `{"architectures":["XLMRobertaForSequenceClassification"],"hidden_act":"gelu","hidden_size":1024,
	"id2label":{"0":"LABEL_0"},"intermediate_size":4096,"layer_norm_eps":1e-05,"max_position_embeddings":8194,
	"model_type":"xlm-roberta","num_attention_heads":16,"num_hidden_layers":24,"pad_token_id":1,
	"position_embedding_type":"absolute","torch_dtype":"float32","type_vocab_size":1,"vocab_size":250002}`

// TestFromHFScores checks the heads of models that score texts, of an encoder and of a decoder.
// bge-reranker-v2-m3 has 567,755,777 parameters. Files lack the first two positions, and synthetic
// models the 1,025 biases of the head.
func TestFromHFScores(t *testing.T) {
	c, typ, err := arch.FromHF([]byte(rerankerM3), nil)
	if err != nil || typ != gguf.F32 || c.Arch != "bert" || c.Context != 8192 || c.Types != 1 || c.Eps != 1e-5 ||
		c.Pooling != model.FirstPooling || c.Scoring != (model.Scoring{Count: 1, Dense: true}) ||
		parameters(c) != 567_755_777-2*1024-1025 {
		t.Errorf("%+v of %d parameters, %v", c, parameters(c), err)
	}
	text := strings.Replace(qwenEmbedding, "Qwen3ForCausalLM", "Qwen3ForSequenceClassification", 1)
	c, _, err = arch.FromHF([]byte(text), modulesOf("mean_tokens").read)
	if err != nil || c.Pooling != model.LastPooling || c.Scoring != (model.Scoring{Count: 2, Share: true}) {
		t.Errorf("%+v, %v", c, err)
	}
	text = strings.Replace(qwenEmbedding, `"model_type"`, `"is_causal":false,"model_type"`, 1)
	if c, _, err = arch.FromHF([]byte(text), nil); err != nil || !c.Bidirectional || c.Pooling != model.MeanPooling {
		t.Errorf("in both directions: %+v, %v", c, err)
	}
}

// TestFromHFEncodersRefuses checks that errors name a missing size, or a feature that files of the
// family cannot express.
func TestFromHFEncodersRefuses(t *testing.T) {
	change := func(text, old, new string) string {
		if !strings.Contains(text, old) {
			t.Fatalf("%s is not in %s", old, text)
		}
		return strings.Replace(text, old, new, 1)
	}
	for text, want := range map[string]string{
		`{"model_type":"bert","hidden_size":64}`: "without intermediate_size, max_position_embeddings, " +
			"num_attention_heads, num_hidden_layers or vocab_size",
		change(bertBase, `"gelu"`, `"relu"`):                                       `hidden_act "relu" is not supported in bert`,
		change(bertBase, `"absolute"`, `"relative_key"`):                           `position_embedding_type "relative_key"`,
		change(bertBase, `"vocab_size"`, `"is_decoder":true,"vocab_size"`):         "is_decoder",
		change(bertBase, `"hidden_size":768`, `"hidden_size":770`):                 "hidden_size 770 cannot be divided",
		change(bertBase, "BertForMaskedLM", "BertForTokenClassification"):          `"BertForTokenClassification"`,
		change(bertBase, `"type_vocab_size":2`, `"type_vocab_size":-1`):            "-1 token types",
		change(rerankerM3, `"pad_token_id":1`, `"pad_token_id":8193`):              "pad_token_id 8193",
		change(nomicEmbed, `"n_embd":768,`, ``):                                    "without hidden_size is",
		change(nomicEmbed, `"swiglu"`, `"gelu"`):                                   `hidden_act "gelu"`,
		change(nomicEmbed, `"causal":`, `"moe_every_n_layers":2,"causal":`):        "moe_every_n_layers is not supported",
		change(nomicEmbed, `"prenorm":false`, `"prenorm":true`):                    "prenorm is not supported",
		change(nomicEmbed, `"rotary_emb_fraction":1.0`, `"rotary_emb_fraction":0`): "rotary_emb_fraction",
		change(embeddingGemma, `"sliding_window":512,`, ``):                        "without sliding_window",
		`{"model_type":"roberta"}`:                                                 `"roberta"`,
		`{"model_type":"modernbert"}`:                                              "bert, ",
	} {
		if c, _, err := arch.FromHF([]byte(text), nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60s: %+v, %v; want an error about %s", text, c, err, want)
		}
	}
	edit := func(f folder, name, text string) folder { f[name] = text; return f }
	lacks := modulesOf("mean_tokens")
	delete(lacks, "1_Pooling/config.json")
	for want, f := range map[string]folder{
		"invalid modules.json":                    {"modules.json": `{`},
		"has no Pooling module":                   {"modules.json": `[]`},
		"module 1: pooling mode \"max_tokens\"":   modulesOf("max_tokens"),
		"1_Pooling/config.json":                   lacks,
		"has no pooling_mode":                     edit(modulesOf("cls_token"), "1_Pooling/config.json", `{}`),
		`"sentence_transformers.models.CNN"`:      {"modules.json": `[{"type":"sentence_transformers.models.CNN"}]`},
		`path "../../etc/config.json" is outside`: {"modules.json": `[{"path":"../../etc","type":"x.Pooling"}]`},
		"from 768 to 256 numbers": modulesOf("mean_tokens", `{"in_features":768,"out_features":256,`+
			identity),
		`"torch.nn.modules.activation.Tanh"`: modulesOf("mean_tokens",
			`{"in_features":1024,"out_features":256,"activation_function":"torch.nn.modules.activation.Tanh"}`),
	} {
		if c, _, err := arch.FromHF([]byte(qwenEmbedding), f.read); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v, %v; want an error about %s", c.Pooling, err, want)
		}
	}
}

// FuzzFromHF checks that FromHF returns an error or a valid configuration for any config.json and
// any other files.
func FuzzFromHF(f *testing.F) {
	for _, text := range []string{bertBase, nomicEmbed, embeddingGemma, qwenEmbedding, rerankerM3} {
		m := modulesOf("mean_tokens", `{"in_features":768,"out_features":9,`+identity)
		f.Add([]byte(text), []byte(m["modules.json"]), []byte(m["1_Pooling/config.json"]))
	}
	for _, text := range hubConfigs {
		f.Add([]byte(text), []byte("[]"), []byte("{}"))
	}
	f.Fuzz(func(t *testing.T, text, modules, module []byte) {
		c, _, err := arch.FromHF(text, func(name string) ([]byte, error) {
			if name == "modules.json" {
				return modules, nil
			}
			return module, nil
		})
		if err == nil && arch.Check(c) != nil {
			t.Fatalf("%+v: %v", c, arch.Check(c))
		}
	})
}

// parameters returns the number of parameters of a configuration.
func parameters(c model.Config) (n int64) {
	for _, s := range modelshape.Tensors(c) {
		if s.Fixed == nil {
			n += int64(s.Dims[0]) * int64(s.Rows())
		}
	}
	return n
}
