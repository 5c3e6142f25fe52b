package model

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// presets lists well-known models by their public configurations.
var presets = []Config{
	llamaPreset("llama-160m", Dims{Hidden: 768, Layers: 12, Heads: 12, KVHeads: 12, HeadDim: 64, FFN: 3072,
		Vocab: 32000, Context: 2048}),
	llamaPreset("tinyllama-1.1b", Dims{Hidden: 2048, Layers: 22, Heads: 32, KVHeads: 4, HeadDim: 64, FFN: 5632,
		Vocab: 32000, Context: 2048}),
	llamaPreset("llama-1.3b", Dims{Hidden: 2048, Layers: 24, Heads: 16, KVHeads: 16, HeadDim: 128, FFN: 5504,
		Vocab: 32000, Context: 2048}),
	llama3Preset("llama-3.2-1b", true, 32, Dims{Hidden: 2048, Layers: 16, Heads: 32, KVHeads: 8, HeadDim: 64, FFN: 8192,
		Vocab: 128256, Context: 131072}),
	llama3Preset("llama-3.2-3b", true, 32, Dims{Hidden: 3072, Layers: 28, Heads: 24, KVHeads: 8, HeadDim: 128,
		FFN: 8192, Vocab: 128256, Context: 131072}),
	llama3Preset("llama-3.1-8b", false, 8, Dims{Hidden: 4096, Layers: 32, Heads: 32, KVHeads: 8, HeadDim: 128,
		FFN: 14336, Vocab: 128256, Context: 131072}),
	qwen3Preset("qwen3-0.6b", Dims{Hidden: 1024, Layers: 28, Heads: 16, KVHeads: 8, HeadDim: 128, FFN: 3072,
		Vocab: 151936, Context: 40960}),
	qwen3Preset("qwen3-4b", Dims{Hidden: 2560, Layers: 36, Heads: 32, KVHeads: 8, HeadDim: 128, FFN: 9728,
		Vocab: 151936, Context: 40960}),
	{Name: "qwen3-30b-a3b", Arch: "qwen3moe", Eps: 1e-6, RopeBase: 1e6, Experts: Experts{Count: 128, Used: 8, FFN: 768},
		Dims: Dims{Hidden: 2048, Layers: 48, Heads: 32, KVHeads: 4, HeadDim: 128, FFN: 6144, Vocab: 151936,
			Context: 40960}},
	{Name: "gemma2-2b", Arch: "gemma2", Eps: 1e-6, RopeBase: 1e4, Tied: true,
		Windows: Windows{Size: 4096, Period: 2},
		Scales:  Scales{AttnCap: 50, LogitCap: 30},
		Dims: Dims{Hidden: 2304, Layers: 26, Heads: 8, KVHeads: 4, HeadDim: 256, FFN: 9216, Vocab: 256000,
			Context: 8192}},
	{Name: "gemma3-1b", Arch: "gemma3", Eps: 1e-6, RopeBase: 1e6, Tied: true,
		Windows: Windows{Size: 512, Period: 6, Base: 1e4},
		Dims: Dims{Hidden: 1152, Layers: 26, Heads: 4, KVHeads: 1, HeadDim: 256, FFN: 6912, Vocab: 262144,
			Context: 32768}},
	{Name: "gemma4-e2b", Arch: "gemma4", Eps: 1e-6, RopeBase: 1e6, Tied: true,
		Windows:  Windows{Size: 512, Layers: notLast(35, 5), Base: 1e4, HeadDim: 256, RopeDim: 256},
		Scales:   Scales{LogitCap: 30},
		SharedKV: 20, Inputs: 256, FFNOf: widths(15, 6144, 35, 12288),
		Dims: Dims{Hidden: 1536, Layers: 35, Heads: 8, KVHeads: 1, HeadDim: 512, FFN: 12288, Vocab: 262144,
			Context: 131072}},
	{Name: "gemma4-26b-a4b", Arch: "gemma4", Eps: 1e-6, RopeBase: 1e6, Tied: true,
		Windows:   Windows{Size: 1024, Layers: notLast(30, 6), Base: 1e4, HeadDim: 256, RopeDim: 256},
		Scales:    Scales{LogitCap: 30},
		Experts:   Experts{Count: 128, Used: 8, FFN: 704},
		KVHeadsOf: everyLayer(30, 6, 8, 2), NoValues: lastOf(30, 6), FusedExperts: true,
		Dims: Dims{Hidden: 2816, Layers: 30, Heads: 16, KVHeads: 8, HeadDim: 512, FFN: 2112, Vocab: 262144,
			Context: 262144}},
	{Name: "gpt-oss-20b", Arch: "gpt-oss", Eps: 1e-5, RopeBase: 15e4, Windows: Windows{Size: 128, Period: 2},
		Yarn: &Yarn{Factor: 32, Original: 4096, Fast: 32, Slow: 1}, Experts: Experts{Count: 32, Used: 4, FFN: 2880},
		Dims: Dims{Hidden: 2880, Layers: 24, Heads: 64, KVHeads: 8, HeadDim: 64, FFN: 2880, Vocab: 201088,
			Context: 131072}},
	{Name: "llama4-scout", Arch: "llama4", Eps: 1e-5, RopeBase: 5e5, Windows: Windows{Chunk: llama4Chunk},
		Experts: Experts{Count: 16, Used: 1, FFN: 8192, Shared: 8192, Every: 1},
		Dims: Dims{Hidden: 5120, Layers: 48, Heads: 40, KVHeads: 8, HeadDim: 128, FFN: 16384, Vocab: 202048,
			Context: 1 << 20}},
	{Name: "deepseek-v2-lite", Arch: "deepseek2", Eps: 1e-6, RopeBase: 1e4, RopeDim: 64,
		Yarn:    &Yarn{Factor: 40, Original: 4096, Fast: 32, Slow: 1, Log: 0.707},
		Latent:  Latent{KV: 512, Key: 192, Value: 128, Split: true},
		Experts: Experts{Count: 64, Used: 6, FFN: 1408, Shared: 2816, Dense: 1},
		Dims: Dims{Hidden: 2048, Layers: 27, Heads: 16, KVHeads: 1, HeadDim: 576, FFN: 10944, Vocab: 102400,
			Context: 163840}},
	{Name: "phi-3-mini", Arch: "phi3", Eps: 1e-5, RopeBase: 1e4, Original: 4096,
		Dims: Dims{Hidden: 3072, Layers: 32, Heads: 32, KVHeads: 32, HeadDim: 96, FFN: 8192, Vocab: 32064,
			Context: 4096}},
	{Name: "ministral-3-3b", Arch: "mistral3", Eps: 1e-5, RopeBase: 1e6, Tied: true, AttnTemperature: 0.1,
		Yarn: &Yarn{Factor: 16, Original: 16384, Fast: 32, Slow: 1, Log: 1},
		Dims: Dims{Hidden: 3072, Layers: 26, Heads: 32, KVHeads: 8, HeadDim: 128, FFN: 9216, Vocab: 131072,
			Context: 262144}},
	{Name: "mixtral-8x7b", Arch: "llama", Eps: 1e-5, RopeBase: 1e6, Experts: Experts{Count: 8, Used: 2, FFN: 14336},
		Dims: Dims{Hidden: 4096, Layers: 32, Heads: 32, KVHeads: 8, HeadDim: 128, FFN: 14336, Vocab: 32000,
			Context: 32768}},
	{Name: "qwen1.5-moe-a2.7b", Arch: "qwen2moe", Eps: 1e-6, RopeBase: 1e6,
		Experts: Experts{Count: 60, Used: 4, FFN: 1408, Shared: 5632},
		Dims: Dims{Hidden: 2048, Layers: 24, Heads: 16, KVHeads: 16, HeadDim: 128, FFN: 5632, Vocab: 151936,
			Context: 8192}},
	{Name: "smollm3-3b", Arch: "smollm3", Eps: 1e-6, RopeBase: 5e6, Tied: true,
		Dims: Dims{Hidden: 2048, Layers: 36, Heads: 16, KVHeads: 4, HeadDim: 128, FFN: 11008, Vocab: 128256,
			Context: 65536}},
	{Name: "granite-3.1-2b", Arch: "granite", Eps: 1e-5, RopeBase: 5e6, Tied: true,
		Scales: Scales{Embed: 12, Residual: 0.22, Attn: 0.015625, Logits: 8},
		Dims: Dims{Hidden: 2048, Layers: 40, Heads: 32, KVHeads: 8, HeadDim: 64, FFN: 8192, Vocab: 49155,
			Context: 131072}},
	{Name: "granite-3.1-1b-a400m", Arch: "granitemoe", Eps: 1e-6, RopeBase: 15e5, Tied: true,
		Scales:  Scales{Embed: 12, Residual: 0.22, Attn: 0.015625, Logits: 6},
		Experts: Experts{Count: 32, Used: 8, FFN: 512},
		Dims: Dims{Hidden: 1024, Layers: 24, Heads: 16, KVHeads: 8, HeadDim: 64, FFN: 512, Vocab: 49155,
			Context: 131072}},
	{Name: "olmo2-1b", Arch: "olmo2", Eps: 1e-6, RopeBase: 5e5,
		Dims: Dims{Hidden: 2048, Layers: 16, Heads: 16, KVHeads: 16, HeadDim: 128, FFN: 8192, Vocab: 100352,
			Context: 4096}},
	{Name: "olmo3-7b", Arch: "olmo2", Eps: 1e-6, RopeBase: 5e5, Windows: Windows{Size: 4096, Period: 4},
		Yarn: &Yarn{Factor: 8, Original: 8192, Fast: 32, Slow: 1},
		Dims: Dims{Hidden: 4096, Layers: 32, Heads: 32, KVHeads: 32, HeadDim: 128, FFN: 11008, Vocab: 100278,
			Context: 65536}},
	{Name: "bert-base", Arch: "bert", Eps: 1e-12, RopeBase: 1e4, Bidirectional: true, Types: 2, Pooling: MeanPooling,
		Dims: Dims{Hidden: 768, Layers: 12, Heads: 12, KVHeads: 12, HeadDim: 64, FFN: 3072, Vocab: 30522,
			Context: 512}},
	{Name: "qwen3-embedding-0.6b", Arch: "qwen3", Eps: 1e-6, RopeBase: 1e6, Pooling: LastPooling,
		Dims: Dims{Hidden: 1024, Layers: 28, Heads: 16, KVHeads: 8, HeadDim: 128, FFN: 3072, Vocab: 151669,
			Context: 32768}},
	{Name: "embeddinggemma-300m", Arch: "gemma-embedding", Eps: 1e-6, RopeBase: 1e6, Bidirectional: true,
		Pooling: MeanPooling,
		Windows: Windows{Size: 512, Period: 6, Base: 1e4}, Dense: []int{3072, 768},
		Dims: Dims{Hidden: 768, Layers: 24, Heads: 3, KVHeads: 1, HeadDim: 256, FFN: 1152, Vocab: 262144,
			Context: 2048}},
	{Name: "nomic-embed-text-v1.5", Arch: "nomic-bert", Eps: 1e-12, RopeBase: 1e3, Bidirectional: true, Fused: true,
		Types:   2,
		Pooling: MeanPooling,
		Dims: Dims{Hidden: 768, Layers: 12, Heads: 12, KVHeads: 12, HeadDim: 64, FFN: 3072, Vocab: 30528,
			Context: 2048}},
	{Name: "glm4-9b", Arch: "glm4", Eps: 1e-5, RopeBase: 1e4, RopeDim: 64,
		Dims: Dims{Hidden: 4096, Layers: 40, Heads: 32, KVHeads: 2, HeadDim: 128, FFN: 13696, Vocab: 151552,
			Context: 32768}},
	deltaPreset("qwen3.5-0.8b", Dims{Hidden: 1024, Layers: 24, Heads: 8, KVHeads: 2, HeadDim: 256, FFN: 3584,
		Vocab: 248320, Context: 262144}, Recurrence{KeyHeads: 16, ValueHeads: 16}, Experts{}),
	deltaPreset("qwen3.5-4b", Dims{Hidden: 2560, Layers: 32, Heads: 16, KVHeads: 4, HeadDim: 256, FFN: 9216,
		Vocab: 248320, Context: 262144}, Recurrence{KeyHeads: 16, ValueHeads: 32}, Experts{}),
	deltaPreset("qwen3.5-35b-a3b", Dims{Hidden: 2048, Layers: 40, Heads: 16, KVHeads: 2, HeadDim: 256, FFN: 512,
		Vocab: 248320, Context: 262144}, Recurrence{KeyHeads: 16, ValueHeads: 32},
		Experts{Count: 256, Used: 8, FFN: 512, Shared: 512}),
	deltaPreset("qwen3-next-80b-a3b", Dims{Hidden: 2048, Layers: 48, Heads: 16, KVHeads: 2, HeadDim: 256, FFN: 5120,
		Vocab: 151936, Context: 262144}, Recurrence{KeyHeads: 16, ValueHeads: 32},
		Experts{Count: 512, Used: 10, FFN: 512, Shared: 512}),
	// Of our own: qwen3next with fewer and smaller layers, for machines that hold no more.
	deltaPreset("qwen3-next-1b", Dims{Hidden: 1024, Layers: 16, Heads: 8, KVHeads: 2, HeadDim: 256, FFN: 2048,
		Vocab: 65536, Context: 32768}, Recurrence{KeyHeads: 8, ValueHeads: 16},
		Experts{Count: 32, Used: 4, FFN: 512, Shared: 512}),
	{Name: "lfm2-1.2b", Arch: "lfm2", Eps: 1e-5, RopeBase: 1e6, Tied: true, Recurrence: Recurrence{Conv: 3},
		KVHeadsOf: []int{0, 0, 8, 0, 0, 8, 0, 0, 8, 0, 8, 0, 8, 0, 8, 0},
		Dims: Dims{Hidden: 2048, Layers: 16, Heads: 32, KVHeads: 8, HeadDim: 64, FFN: 8192, Vocab: 65536,
			Context: 128000}},
	{Name: "lfm2-8b-a1b", Arch: "lfm2moe", Eps: 1e-5, RopeBase: 1e6, Tied: true, Recurrence: Recurrence{Conv: 3},
		KVHeadsOf: []int{0, 0, 8, 0, 0, 0, 8, 0, 0, 0, 8, 0, 0, 0, 8, 0, 0, 0, 8, 0, 0, 8, 0, 0},
		Experts:   Experts{Count: 32, Used: 4, FFN: 1792, Dense: 2}, Gating: Router{Score: Sigmoid, Norm: true},
		Dims: Dims{Hidden: 2048, Layers: 24, Heads: 32, KVHeads: 8, HeadDim: 64, FFN: 7168, Vocab: 65536,
			Context: 128000}},
}

func llamaPreset(name string, d Dims) Config {
	return Config{Name: name, Arch: "llama", Dims: d, Eps: 1e-5, RopeBase: 1e4}
}

func llama3Preset(name string, tied bool, factor float64, d Dims) Config {
	return Config{Name: name, Arch: "llama", Dims: d, Eps: 1e-5, RopeBase: 5e5, Tied: tied,
		Llama3: &Llama3Rope{Factor: factor, Low: 1, High: 4, Original: 8192}}
}

// deltaPreset is a model with a delta rule in three of four layers.
func deltaPreset(name string, d Dims, r Recurrence, e Experts) Config {
	arch := "qwen35"
	switch {
	case strings.HasPrefix(name, "qwen3-next"):
		arch = "qwen3next"
	case e.Count > 0:
		arch = "qwen35moe"
	}
	r.Conv, r.KeyDim, r.ValueDim, r.Every = 4, 128, 128, 4
	return Config{Name: name, Arch: arch, Dims: d, Eps: 1e-6, RopeBase: 1e7, RopeDim: 64, Recurrence: r, Experts: e,
		Tied: e.Count == 0}
}

func qwen3Preset(name string, d Dims) Config {
	return Config{Name: name, Arch: "qwen3", Dims: d, Eps: 1e-6, RopeBase: 1e6, Tied: true}
}

// families holds a small model per family, with a few million parameters and all features of the
// real models, for tests and first steps.
var families = map[string]func(*Config){
	"llama": func(*Config) {}, "qwen2": func(*Config) {}, "qwen3": func(*Config) {},
	"qwen3moe": func(c *Config) { c.Experts = Experts{Count: 8, Used: 2, FFN: 256} },
	"llama-moe": func(c *Config) {
		c.Arch, c.Experts = "llama", Experts{Count: 8, Used: 2, FFN: c.FFN}
	},
	"llama-yarn": func(c *Config) {
		c.Arch, c.Yarn = "llama", &Yarn{Factor: 8, Original: 512, Fast: 32, Slow: 1}
	},
	"gemma2": func(c *Config) {
		c.Tied, c.Windows = true, Windows{Size: 256, Period: 2}
		c.Scales = Scales{AttnCap: 50, LogitCap: 30}
	},
	"gemma3": func(c *Config) {
		c.Tied, c.Windows = true, Windows{Size: 256, Period: 6, Base: 1e4}
		c.RopeBase, c.RopeScale = 1e6, 0.125
	},
	"gemma4": func(c *Config) {
		c.Tied, c.Windows = true, Windows{Size: 256, Layers: notLast(6, 3), Base: 1e4, HeadDim: 32, RopeDim: 32}
		c.RopeBase, c.HeadDim, c.Heads, c.KVHeads = 1e6, 64, 4, 1
		c.SharedKV, c.Inputs, c.FFNOf, c.Scales.LogitCap = 3, 16, widths(3, 256, 6, 512), 30
	},
	"gemma4-moe": func(c *Config) {
		c.Arch, c.Tied, c.Windows = "gemma4", true, Windows{Size: 256, Layers: notLast(6, 6), Base: 1e4, HeadDim: 32,
			RopeDim: 32}
		c.RopeBase, c.HeadDim, c.Heads, c.KVHeads, c.KVHeadsOf = 1e6, 64, 4, 2, everyLayer(6, 6, 2, 1)
		c.NoValues, c.FusedExperts, c.Scales.LogitCap = lastOf(6, 6), true, 30
		c.Experts = Experts{Count: 8, Used: 2, FFN: 256}
	},
	"gpt-oss": func(c *Config) {
		c.Windows, c.Experts = Windows{Size: 128, Period: 2}, Experts{Count: 8, Used: 4, FFN: c.FFN}
		c.RopeBase, c.Yarn = 15e4, &Yarn{Factor: 32, Original: 512, Fast: 32, Slow: 1}
	},
	"deepseek2": func(c *Config) {
		c.RopeDim, c.Latent, c.KVHeads, c.HeadDim = 16, Latent{Q: 64, KV: 48, Key: 48, Value: 32, Split: true}, 1, 64
		c.Yarn = &Yarn{Factor: 16, Original: 512, Fast: 32, Slow: 1, Log: 1}
		c.Experts = Experts{Count: 8, Used: 2, FFN: 256, Shared: 256, Dense: 1}
		c.Gating = Router{Score: Sigmoid, Norm: true, Scale: 2.5, Groups: 4, GroupsUsed: 2}
	},
	"deepseek2-lite": func(c *Config) {
		c.Arch, c.RopeDim, c.KVHeads, c.HeadDim = "deepseek2", 16, 8, 48
		c.Latent, c.Experts = Latent{KV: 64, Key: 48, Value: 32}, Experts{Count: 8, Used: 2, FFN: 256, Shared: 256,
			Dense: 1}
	},
	"llama4": func(c *Config) {
		c.Windows.Chunk, c.RopeBase = llama4Chunk, 5e5
		c.Experts = Experts{Count: 4, Used: 1, FFN: 256, Shared: 256, Every: 2}
	},
	"phi3": func(c *Config) { c.RopeDim, c.Original, c.RopeGain = 24, 512, 1.25 },
	"mistral3": func(c *Config) {
		c.Tied, c.RopeBase, c.AttnTemperature = true, 1e6, 0.125
		c.Yarn = &Yarn{Factor: 16, Original: 512, Fast: 32, Slow: 1, Log: 1}
	},
	"qwen2moe": func(c *Config) { c.Experts = Experts{Count: 8, Used: 4, FFN: 256, Shared: 512} },
	"smollm3":  func(c *Config) { c.Tied, c.RopeBase = true, 5e6 },
	"granite":  func(c *Config) { c.Tied, c.Scales = true, graniteScales },
	"granitemoe": func(c *Config) {
		c.Tied, c.Scales, c.Experts = true, graniteScales, Experts{Count: 8, Used: 3, FFN: c.FFN, Shared: 512}
	},
	"olmo2": func(c *Config) { c.RopeBase = 5e5 },
	"olmo3": func(c *Config) {
		c.Arch, c.RopeBase, c.Windows, c.RopeGain = "olmo2", 5e5, Windows{Size: 256, Period: 4}, 1.25
		c.Yarn = &Yarn{Factor: 8, Original: 512, Fast: 32, Slow: 1}
	},
	"glm4":      func(c *Config) { c.RopeDim = 16 },
	"qwen35":    func(c *Config) { deltaTiny(c, false, Experts{}) },
	"qwen35moe": func(c *Config) { deltaTiny(c, false, Experts{Count: 8, Used: 2, FFN: 256, Shared: 256}) },
	"qwen3next": func(c *Config) { deltaTiny(c, false, Experts{Count: 8, Used: 2, FFN: 256, Shared: 256}) },
	"qwen3next-legacy": func(c *Config) {
		c.Arch = "qwen3next"
		deltaTiny(c, true, Experts{Count: 8, Used: 2, FFN: 256, Shared: 256})
	},
	"lfm2": func(c *Config) {
		c.Tied, c.RopeBase, c.KVHeadsOf, c.Recurrence.Conv = true, 1e6, everyLayer(6, 3, 0, 2), 3
	},
	"lfm2moe": func(c *Config) {
		c.Tied, c.RopeBase, c.KVHeadsOf, c.Recurrence.Conv = true, 1e6, everyLayer(6, 3, 0, 2), 3
		c.Experts, c.Gating = Experts{Count: 8, Used: 2, FFN: 256, Dense: 2}, Router{Score: Sigmoid, Norm: true}
	},
	"bert": encoderTiny, "bert-rerank": func(c *Config) {
		encoderTiny(c)
		c.Arch, c.Pooling, c.Scoring = "bert", FirstPooling, Scoring{Count: 1, Dense: true}
	},
	"nomic-bert": func(c *Config) {
		encoderTiny(c)
		c.RopeBase, c.Fused = 1e3, true
	},
	"gemma-embedding": func(c *Config) {
		c.Bidirectional, c.Pooling, c.Dense = true, MeanPooling, []int{384, 256}
		c.Windows, c.RopeBase = Windows{Size: 256, Period: 6, Base: 1e4}, 1e6
	},
	"qwen3-embedding": func(c *Config) { c.Arch, c.Pooling = "qwen3", LastPooling },
	"qwen3-rerank": func(c *Config) {
		c.Arch, c.Pooling, c.Scoring = "qwen3", LastPooling, Scoring{Count: 2, Share: true}
	},
}

// widths returns width for layers below bound, and rest for the others.
func widths(bound, width, layers, rest int) (out []int) {
	for i := range layers {
		if out = append(out, rest); i < bound {
			out[i] = width
		}
	}
	return out
}

// everyLayer returns n for each layer, and last for the last layer of each period.
func everyLayer(layers, period, n, last int) (out []int) {
	for _, is := range lastOf(layers, period) {
		if out = append(out, n); is {
			out[len(out)-1] = last
		}
	}
	return out
}

// lastOf reports for each layer whether it is the last of a period.
func lastOf(layers, period int) (out []bool) {
	for i := range layers {
		out = append(out, i%period == period-1)
	}
	return out
}

// notLast reports for each layer whether it is not the last of a period.
func notLast(layers, period int) (out []bool) {
	for _, is := range lastOf(layers, period) {
		out = append(out, !is)
	}
	return out
}

// deltaTiny changes a small model to have layers with a delta rule, and heads of which half
// rotates.
func deltaTiny(c *Config, joined bool, e Experts) {
	c.RopeBase, c.RopeDim, c.Experts, c.Tied = 1e7, 16, e, e.Count == 0
	c.Recurrence = Recurrence{Conv: 4, KeyHeads: 2, ValueHeads: 4, KeyDim: 32, ValueDim: 32, Every: 4, Joined: joined}
}

// encoderTiny changes a small model to an encoder like BERT.
func encoderTiny(c *Config) {
	c.KVHeads, c.Bidirectional, c.Types, c.Pooling, c.Eps = c.Heads, true, 2, MeanPooling, 1e-12
}

var graniteScales = Scales{Embed: 12, Residual: 0.25, Attn: 0.125, Logits: 8}

// Tiny returns the small model of a family, which is also the preset FAMILY-tiny. It returns false
// for an unknown family.
func Tiny(family string) (Config, bool) {
	change, ok := families[strings.ToLower(family)]
	if !ok {
		return Config{}, false
	}
	c := Config{Name: strings.ToLower(family) + "-tiny", Arch: strings.ToLower(family), Eps: 1e-5, RopeBase: 1e4,
		Dims: Dims{Hidden: 256, Layers: 6, Heads: 8, KVHeads: 2, HeadDim: 32, FFN: 512, Vocab: 4096, Context: 4096}}
	change(&c)
	return c, true
}

// Families returns the sorted names that Tiny accepts.
func Families() []string { return slices.Sorted(maps.Keys(families)) }

// Preset returns the configuration of a well-known model by name; case is ignored.
func Preset(name string) (Config, error) {
	if family, tiny := strings.CutSuffix(strings.ToLower(name), "-tiny"); tiny {
		if c, ok := Tiny(family); ok {
			return c, nil
		}
	}
	i := slices.IndexFunc(presets, func(c Config) bool { return strings.EqualFold(c.Name, name) })
	if i < 0 {
		return Config{}, fmt.Errorf("unknown preset %q: use one of %s, or FAMILY-tiny with a family of %s",
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
