package synth

import (
	"fmt"
	"slices"
	"strings"

	"sandwich/runtime/model"
	"sandwich/runtime/model/arch"
)

// presets lists well-known models by their public configurations.
var presets = []model.Config{
	llamaPreset("llama-160m", model.Dims{Hidden: 768, Layers: 12, Heads: 12, KVHeads: 12, HeadDim: 64, FFN: 3072,
		Vocab: 32000, Context: 2048}),
	llamaPreset("tinyllama-1.1b", model.Dims{Hidden: 2048, Layers: 22, Heads: 32, KVHeads: 4, HeadDim: 64, FFN: 5632,
		Vocab: 32000, Context: 2048}),
	llamaPreset("llama-1.3b", model.Dims{Hidden: 2048, Layers: 24, Heads: 16, KVHeads: 16, HeadDim: 128, FFN: 5504,
		Vocab: 32000, Context: 2048}),
	llama3Preset("llama-3.2-1b", true, 32, model.Dims{Hidden: 2048, Layers: 16, Heads: 32, KVHeads: 8, HeadDim: 64,
		FFN:   8192,
		Vocab: 128256, Context: 131072}),
	llama3Preset("llama-3.2-3b", true, 32, model.Dims{Hidden: 3072, Layers: 28, Heads: 24, KVHeads: 8, HeadDim: 128,
		FFN: 8192, Vocab: 128256, Context: 131072}),
	llama3Preset("llama-3.1-8b", false, 8, model.Dims{Hidden: 4096, Layers: 32, Heads: 32, KVHeads: 8, HeadDim: 128,
		FFN: 14336, Vocab: 128256, Context: 131072}),
	qwen3Preset("qwen3-0.6b", model.Dims{Hidden: 1024, Layers: 28, Heads: 16, KVHeads: 8, HeadDim: 128, FFN: 3072,
		Vocab: 151936, Context: 40960}),
	qwen3Preset("qwen3-4b", model.Dims{Hidden: 2560, Layers: 36, Heads: 32, KVHeads: 8, HeadDim: 128, FFN: 9728,
		Vocab: 151936, Context: 40960}),
	{Name: "qwen3-30b-a3b", Arch: "qwen3moe", Eps: 1e-6, RopeBase: 1e6,
		Experts: model.Experts{Count: 128, Used: 8, FFN: 768},
		Dims: model.Dims{Hidden: 2048, Layers: 48, Heads: 32, KVHeads: 4, HeadDim: 128, FFN: 6144, Vocab: 151936,
			Context: 40960}},
	{Name: "gemma2-2b", Arch: "gemma2", Eps: 1e-6, RopeBase: 1e4, Tied: true,
		Windows: model.Windows{Size: 4096, Period: 2},
		Scales:  model.Scales{AttnCap: 50, LogitCap: 30},
		Dims: model.Dims{Hidden: 2304, Layers: 26, Heads: 8, KVHeads: 4, HeadDim: 256, FFN: 9216, Vocab: 256000,
			Context: 8192}},
	{Name: "gemma3-1b", Arch: "gemma3", Eps: 1e-6, RopeBase: 1e6, Tied: true,
		Windows: model.Windows{Size: 512, Period: 6, Base: 1e4},
		Dims: model.Dims{Hidden: 1152, Layers: 26, Heads: 4, KVHeads: 1, HeadDim: 256, FFN: 6912, Vocab: 262144,
			Context: 32768}},
	{Name: "gemma4-e2b", Arch: "gemma4", Eps: 1e-6, RopeBase: 1e6, Tied: true,
		Windows:  model.Windows{Size: 512, Layers: model.NotLast(35, 5), Base: 1e4, HeadDim: 256, RopeDim: 256},
		Scales:   model.Scales{LogitCap: 30},
		SharedKV: 20, Inputs: 256, FFNOf: model.Widths(15, 6144, 35, 12288),
		Dims: model.Dims{Hidden: 1536, Layers: 35, Heads: 8, KVHeads: 1, HeadDim: 512, FFN: 12288, Vocab: 262144,
			Context: 131072}},
	{Name: "gemma4-26b-a4b", Arch: "gemma4", Eps: 1e-6, RopeBase: 1e6, Tied: true,
		Windows:   model.Windows{Size: 1024, Layers: model.NotLast(30, 6), Base: 1e4, HeadDim: 256, RopeDim: 256},
		Scales:    model.Scales{LogitCap: 30},
		Experts:   model.Experts{Count: 128, Used: 8, FFN: 704},
		KVHeadsOf: everyLayer(30, 6, 8, 2), NoValues: model.LastOf(30, 6), FusedExperts: true,
		Dims: model.Dims{Hidden: 2816, Layers: 30, Heads: 16, KVHeads: 8, HeadDim: 512, FFN: 2112, Vocab: 262144,
			Context: 262144}},
	{Name: "gpt-oss-20b", Arch: "gpt-oss", Eps: 1e-5, RopeBase: 15e4, Windows: model.Windows{Size: 128, Period: 2},
		Yarn:    &model.Yarn{Factor: 32, Original: 4096, Fast: 32, Slow: 1},
		Experts: model.Experts{Count: 32, Used: 4, FFN: 2880},
		Dims: model.Dims{Hidden: 2880, Layers: 24, Heads: 64, KVHeads: 8, HeadDim: 64, FFN: 2880, Vocab: 201088,
			Context: 131072}},
	{Name: "llama4-scout", Arch: "llama4", Eps: 1e-5, RopeBase: 5e5, Windows: model.Windows{Chunk: arch.Llama4Chunk},
		Experts: model.Experts{Count: 16, Used: 1, FFN: 8192, Shared: 8192, Every: 1},
		Dims: model.Dims{Hidden: 5120, Layers: 48, Heads: 40, KVHeads: 8, HeadDim: 128, FFN: 16384, Vocab: 202048,
			Context: 1 << 20}},
	{Name: "deepseek-v2-lite", Arch: "deepseek2", Eps: 1e-6, RopeBase: 1e4, RopeDim: 64,
		Yarn:    &model.Yarn{Factor: 40, Original: 4096, Fast: 32, Slow: 1, Log: 0.707},
		Latent:  model.Latent{KV: 512, Key: 192, Value: 128, Split: true},
		Experts: model.Experts{Count: 64, Used: 6, FFN: 1408, Shared: 2816, Dense: 1},
		Dims: model.Dims{Hidden: 2048, Layers: 27, Heads: 16, KVHeads: 1, HeadDim: 576, FFN: 10944, Vocab: 102400,
			Context: 163840}},
	{Name: "phi-3-mini", Arch: "phi3", Eps: 1e-5, RopeBase: 1e4, Original: 4096,
		Dims: model.Dims{Hidden: 3072, Layers: 32, Heads: 32, KVHeads: 32, HeadDim: 96, FFN: 8192, Vocab: 32064,
			Context: 4096}},
	{Name: "ministral-3-3b", Arch: "mistral3", Eps: 1e-5, RopeBase: 1e6, Tied: true, AttnTemperature: 0.1,
		Yarn: &model.Yarn{Factor: 16, Original: 16384, Fast: 32, Slow: 1, Log: 1},
		Dims: model.Dims{Hidden: 3072, Layers: 26, Heads: 32, KVHeads: 8, HeadDim: 128, FFN: 9216, Vocab: 131072,
			Context: 262144}},
	{Name: "mixtral-8x7b", Arch: "llama", Eps: 1e-5, RopeBase: 1e6,
		Experts: model.Experts{Count: 8, Used: 2, FFN: 14336},
		Dims: model.Dims{Hidden: 4096, Layers: 32, Heads: 32, KVHeads: 8, HeadDim: 128, FFN: 14336, Vocab: 32000,
			Context: 32768}},
	{Name: "qwen1.5-moe-a2.7b", Arch: "qwen2moe", Eps: 1e-6, RopeBase: 1e6,
		Experts: model.Experts{Count: 60, Used: 4, FFN: 1408, Shared: 5632},
		Dims: model.Dims{Hidden: 2048, Layers: 24, Heads: 16, KVHeads: 16, HeadDim: 128, FFN: 5632, Vocab: 151936,
			Context: 8192}},
	{Name: "smollm3-3b", Arch: "smollm3", Eps: 1e-6, RopeBase: 5e6, Tied: true,
		Dims: model.Dims{Hidden: 2048, Layers: 36, Heads: 16, KVHeads: 4, HeadDim: 128, FFN: 11008, Vocab: 128256,
			Context: 65536}},
	{Name: "granite-3.1-2b", Arch: "granite", Eps: 1e-5, RopeBase: 5e6, Tied: true,
		Scales: model.Scales{Embed: 12, Residual: 0.22, Attn: 0.015625, Logits: 8},
		Dims: model.Dims{Hidden: 2048, Layers: 40, Heads: 32, KVHeads: 8, HeadDim: 64, FFN: 8192, Vocab: 49155,
			Context: 131072}},
	{Name: "granite-3.1-1b-a400m", Arch: "granitemoe", Eps: 1e-6, RopeBase: 15e5, Tied: true,
		Scales:  model.Scales{Embed: 12, Residual: 0.22, Attn: 0.015625, Logits: 6},
		Experts: model.Experts{Count: 32, Used: 8, FFN: 512},
		Dims: model.Dims{Hidden: 1024, Layers: 24, Heads: 16, KVHeads: 8, HeadDim: 64, FFN: 512, Vocab: 49155,
			Context: 131072}},
	{Name: "olmo2-1b", Arch: "olmo2", Eps: 1e-6, RopeBase: 5e5,
		Dims: model.Dims{Hidden: 2048, Layers: 16, Heads: 16, KVHeads: 16, HeadDim: 128, FFN: 8192, Vocab: 100352,
			Context: 4096}},
	{Name: "olmo3-7b", Arch: "olmo2", Eps: 1e-6, RopeBase: 5e5, Windows: model.Windows{Size: 4096, Period: 4},
		Yarn: &model.Yarn{Factor: 8, Original: 8192, Fast: 32, Slow: 1},
		Dims: model.Dims{Hidden: 4096, Layers: 32, Heads: 32, KVHeads: 32, HeadDim: 128, FFN: 11008, Vocab: 100278,
			Context: 65536}},
	{Name: "bert-base", Arch: "bert", Eps: 1e-12, RopeBase: 1e4, Bidirectional: true, Types: 2,
		Pooling: model.MeanPooling,
		Dims: model.Dims{Hidden: 768, Layers: 12, Heads: 12, KVHeads: 12, HeadDim: 64, FFN: 3072, Vocab: 30522,
			Context: 512}},
	{Name: "qwen3-embedding-0.6b", Arch: "qwen3", Eps: 1e-6, RopeBase: 1e6, Pooling: model.LastPooling,
		Dims: model.Dims{Hidden: 1024, Layers: 28, Heads: 16, KVHeads: 8, HeadDim: 128, FFN: 3072, Vocab: 151669,
			Context: 32768}},
	{Name: "embeddinggemma-300m", Arch: "gemma-embedding", Eps: 1e-6, RopeBase: 1e6, Bidirectional: true,
		Pooling: model.MeanPooling,
		Windows: model.Windows{Size: 512, Period: 6, Base: 1e4}, Dense: []int{3072, 768},
		Dims: model.Dims{Hidden: 768, Layers: 24, Heads: 3, KVHeads: 1, HeadDim: 256, FFN: 1152, Vocab: 262144,
			Context: 2048}},
	{Name: "nomic-embed-text-v1.5", Arch: "nomic-bert", Eps: 1e-12, RopeBase: 1e3, Bidirectional: true, Fused: true,
		Types:   2,
		Pooling: model.MeanPooling,
		Dims: model.Dims{Hidden: 768, Layers: 12, Heads: 12, KVHeads: 12, HeadDim: 64, FFN: 3072, Vocab: 30528,
			Context: 2048}},
	{Name: "glm4-9b", Arch: "glm4", Eps: 1e-5, RopeBase: 1e4, RopeDim: 64,
		Dims: model.Dims{Hidden: 4096, Layers: 40, Heads: 32, KVHeads: 2, HeadDim: 128, FFN: 13696, Vocab: 151552,
			Context: 32768}},
	deltaPreset("qwen3.5-0.8b", model.Dims{Hidden: 1024, Layers: 24, Heads: 8, KVHeads: 2, HeadDim: 256, FFN: 3584,
		Vocab: 248320, Context: 262144}, model.Recurrence{KeyHeads: 16, ValueHeads: 16}, model.Experts{}),
	deltaPreset("qwen3.5-4b", model.Dims{Hidden: 2560, Layers: 32, Heads: 16, KVHeads: 4, HeadDim: 256, FFN: 9216,
		Vocab: 248320, Context: 262144}, model.Recurrence{KeyHeads: 16, ValueHeads: 32}, model.Experts{}),
	deltaPreset("qwen3.5-35b-a3b", model.Dims{Hidden: 2048, Layers: 40, Heads: 16, KVHeads: 2, HeadDim: 256, FFN: 512,
		Vocab: 248320, Context: 262144}, model.Recurrence{KeyHeads: 16, ValueHeads: 32},
		model.Experts{Count: 256, Used: 8, FFN: 512, Shared: 512}),
	deltaPreset("qwen3-next-80b-a3b", model.Dims{Hidden: 2048, Layers: 48, Heads: 16, KVHeads: 2, HeadDim: 256,
		FFN:   5120,
		Vocab: 151936, Context: 262144}, model.Recurrence{KeyHeads: 16, ValueHeads: 32},
		model.Experts{Count: 512, Used: 10, FFN: 512, Shared: 512}),
	// Of our own: qwen3next with fewer and smaller layers, for machines that hold no more.
	deltaPreset("qwen3-next-1b", model.Dims{Hidden: 1024, Layers: 16, Heads: 8, KVHeads: 2, HeadDim: 256, FFN: 2048,
		Vocab: 65536, Context: 32768}, model.Recurrence{KeyHeads: 8, ValueHeads: 16},
		model.Experts{Count: 32, Used: 4, FFN: 512, Shared: 512}),
	{Name: "lfm2-1.2b", Arch: "lfm2", Eps: 1e-5, RopeBase: 1e6, Tied: true, Recurrence: model.Recurrence{Conv: 3},
		KVHeadsOf: []int{0, 0, 8, 0, 0, 8, 0, 0, 8, 0, 8, 0, 8, 0, 8, 0},
		Dims: model.Dims{Hidden: 2048, Layers: 16, Heads: 32, KVHeads: 8, HeadDim: 64, FFN: 8192, Vocab: 65536,
			Context: 128000}},
	{Name: "lfm2-8b-a1b", Arch: "lfm2moe", Eps: 1e-5, RopeBase: 1e6, Tied: true, Recurrence: model.Recurrence{Conv: 3},
		KVHeadsOf: []int{0, 0, 8, 0, 0, 0, 8, 0, 0, 0, 8, 0, 0, 0, 8, 0, 0, 0, 8, 0, 0, 8, 0, 0},
		Experts:   model.Experts{Count: 32, Used: 4, FFN: 1792, Dense: 2},
		Gating:    model.Router{Score: model.Sigmoid, Norm: true},
		Dims: model.Dims{Hidden: 2048, Layers: 24, Heads: 32, KVHeads: 8, HeadDim: 64, FFN: 7168, Vocab: 65536,
			Context: 128000}},
}

func llamaPreset(name string, d model.Dims) model.Config {
	return model.Config{Name: name, Arch: "llama", Dims: d, Eps: 1e-5, RopeBase: 1e4}
}

func llama3Preset(name string, tied bool, factor float64, d model.Dims) model.Config {
	return model.Config{Name: name, Arch: "llama", Dims: d, Eps: 1e-5, RopeBase: 5e5, Tied: tied,
		Llama3: &model.Llama3Rope{Factor: factor, Low: 1, High: 4, Original: 8192}}
}

// deltaPreset is a model with a delta rule in three of four layers.
func deltaPreset(name string, d model.Dims, r model.Recurrence, e model.Experts) model.Config {
	arch := "qwen35"
	switch {
	case strings.HasPrefix(name, "qwen3-next"):
		arch = "qwen3next"
	case e.Count > 0:
		arch = "qwen35moe"
	}
	r.Conv, r.KeyDim, r.ValueDim, r.Every = 4, 128, 128, 4
	return model.Config{Name: name, Arch: arch, Dims: d, Eps: 1e-6, RopeBase: 1e7, RopeDim: 64, Recurrence: r,
		Experts: e,
		Tied:    e.Count == 0}
}

func qwen3Preset(name string, d model.Dims) model.Config {
	return model.Config{Name: name, Arch: "qwen3", Dims: d, Eps: 1e-6, RopeBase: 1e6, Tied: true}
}

// Preset returns the configuration of a well-known model by name; case is ignored.
func Preset(name string) (model.Config, error) {
	if family, tiny := strings.CutSuffix(strings.ToLower(name), "-tiny"); tiny {
		if c, ok := Tiny(family); ok {
			return c, nil
		}
	}
	i := slices.IndexFunc(presets, func(c model.Config) bool { return strings.EqualFold(c.Name, name) })
	if i < 0 {
		return model.Config{}, fmt.Errorf("unknown preset %q: use one of %s, or FAMILY-tiny with a family of %s",
			name, strings.Join(PresetNames(), ", "), strings.Join(Families(), ", "))
	}
	return presets[i], nil
}

// PresetNames returns the names of the presets.
func PresetNames() []string {
	names := make([]string, len(presets))
	for i, c := range presets {
		names[i] = c.Name
	}
	return names
}
