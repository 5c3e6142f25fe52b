package synth

import (
	"maps"
	"slices"
	"strings"

	"sandwich/runtime/model"
	"sandwich/runtime/model/arch"
)

// families holds a small model per family, with a few million parameters and all features of the
// real models, for tests and first steps.
var families = map[string]func(*model.Config){
	"llama": func(*model.Config) {}, "qwen2": func(*model.Config) {}, "qwen3": func(*model.Config) {},
	"qwen3moe": func(c *model.Config) { c.Experts = model.Experts{Count: 8, Used: 2, FFN: 256} },
	"llama-moe": func(c *model.Config) {
		c.Arch, c.Experts = "llama", model.Experts{Count: 8, Used: 2, FFN: c.FFN}
	},
	"llama-yarn": func(c *model.Config) {
		c.Arch, c.Yarn = "llama", &model.Yarn{Factor: 8, Original: 512, Fast: 32, Slow: 1}
	},
	"gemma2": func(c *model.Config) {
		c.Tied, c.Windows = true, model.Windows{Size: 256, Period: 2}
		c.Scales = model.Scales{AttnCap: 50, LogitCap: 30}
	},
	"gemma3": func(c *model.Config) {
		c.Tied, c.Windows = true, model.Windows{Size: 256, Period: 6, Base: 1e4}
		c.RopeBase, c.RopeScale = 1e6, 0.125
	},
	"gemma4": func(c *model.Config) {
		c.Tied, c.Windows = true, model.Windows{Size: 256, Layers: model.NotLast(6, 3), Base: 1e4, HeadDim: 32,
			RopeDim: 32}
		c.RopeBase, c.HeadDim, c.Heads, c.KVHeads = 1e6, 64, 4, 1
		c.SharedKV, c.Inputs, c.FFNOf, c.Scales.LogitCap = 3, 16, model.Widths(3, 256, 6, 512), 30
	},
	"gemma4-moe": func(c *model.Config) {
		c.Arch, c.Tied, c.Windows = "gemma4", true, model.Windows{Size: 256, Layers: model.NotLast(6, 6), Base: 1e4,
			HeadDim: 32,
			RopeDim: 32}
		c.RopeBase, c.HeadDim, c.Heads, c.KVHeads, c.KVHeadsOf = 1e6, 64, 4, 2, everyLayer(6, 6, 2, 1)
		c.NoValues, c.FusedExperts, c.Scales.LogitCap = model.LastOf(6, 6), true, 30
		c.Experts = model.Experts{Count: 8, Used: 2, FFN: 256}
	},
	"gpt-oss": func(c *model.Config) {
		c.Windows, c.Experts = model.Windows{Size: 128, Period: 2}, model.Experts{Count: 8, Used: 4, FFN: c.FFN}
		c.RopeBase, c.Yarn = 15e4, &model.Yarn{Factor: 32, Original: 512, Fast: 32, Slow: 1}
	},
	"deepseek2": func(c *model.Config) {
		c.RopeDim, c.Latent, c.KVHeads, c.HeadDim = 16, model.Latent{Q: 64, KV: 48, Key: 48, Value: 32, Split: true}, 1,
			64
		c.Yarn = &model.Yarn{Factor: 16, Original: 512, Fast: 32, Slow: 1, Log: 1}
		c.Experts = model.Experts{Count: 8, Used: 2, FFN: 256, Shared: 256, Dense: 1}
		c.Gating = model.Router{Score: model.Sigmoid, Norm: true, Scale: 2.5, Groups: 4, GroupsUsed: 2}
	},
	"deepseek2-lite": func(c *model.Config) {
		c.Arch, c.RopeDim, c.KVHeads, c.HeadDim = "deepseek2", 16, 8, 48
		c.Latent, c.Experts = model.Latent{KV: 64, Key: 48, Value: 32},
			model.Experts{Count: 8, Used: 2, FFN: 256, Shared: 256,
				Dense: 1}
	},
	"llama4": func(c *model.Config) {
		c.Windows.Chunk, c.RopeBase = arch.Llama4Chunk, 5e5
		c.Experts = model.Experts{Count: 4, Used: 1, FFN: 256, Shared: 256, Every: 2}
	},
	"phi3": func(c *model.Config) { c.RopeDim, c.Original, c.RopeGain = 24, 512, 1.25 },
	"mistral3": func(c *model.Config) {
		c.Tied, c.RopeBase, c.AttnTemperature = true, 1e6, 0.125
		c.Yarn = &model.Yarn{Factor: 16, Original: 512, Fast: 32, Slow: 1, Log: 1}
	},
	"qwen2moe": func(c *model.Config) { c.Experts = model.Experts{Count: 8, Used: 4, FFN: 256, Shared: 512} },
	"smollm3":  func(c *model.Config) { c.Tied, c.RopeBase = true, 5e6 },
	"granite":  func(c *model.Config) { c.Tied, c.Scales = true, graniteScales },
	"granitemoe": func(c *model.Config) {
		c.Tied, c.Scales, c.Experts = true, graniteScales, model.Experts{Count: 8, Used: 3, FFN: c.FFN, Shared: 512}
	},
	"olmo2": func(c *model.Config) { c.RopeBase = 5e5 },
	"olmo3": func(c *model.Config) {
		c.Arch, c.RopeBase, c.Windows, c.RopeGain = "olmo2", 5e5, model.Windows{Size: 256, Period: 4}, 1.25
		c.Yarn = &model.Yarn{Factor: 8, Original: 512, Fast: 32, Slow: 1}
	},
	"glm4":      func(c *model.Config) { c.RopeDim = 16 },
	"qwen35":    func(c *model.Config) { deltaTiny(c, false, model.Experts{}) },
	"qwen35moe": func(c *model.Config) { deltaTiny(c, false, model.Experts{Count: 8, Used: 2, FFN: 256, Shared: 256}) },
	"qwen3next": func(c *model.Config) { deltaTiny(c, false, model.Experts{Count: 8, Used: 2, FFN: 256, Shared: 256}) },
	"qwen3next-legacy": func(c *model.Config) {
		c.Arch = "qwen3next"
		deltaTiny(c, true, model.Experts{Count: 8, Used: 2, FFN: 256, Shared: 256})
	},
	"lfm2": func(c *model.Config) {
		c.Tied, c.RopeBase, c.KVHeadsOf, c.Recurrence.Conv = true, 1e6, everyLayer(6, 3, 0, 2), 3
	},
	"lfm2moe": func(c *model.Config) {
		c.Tied, c.RopeBase, c.KVHeadsOf, c.Recurrence.Conv = true, 1e6, everyLayer(6, 3, 0, 2), 3
		c.Experts, c.Gating = model.Experts{Count: 8, Used: 2, FFN: 256, Dense: 2},
			model.Router{Score: model.Sigmoid, Norm: true}
	},
	"bert": encoderTiny, "bert-rerank": func(c *model.Config) {
		encoderTiny(c)
		c.Arch, c.Pooling, c.Scoring = "bert", model.FirstPooling, model.Scoring{Count: 1, Dense: true}
	},
	"nomic-bert": func(c *model.Config) {
		encoderTiny(c)
		c.RopeBase, c.Fused = 1e3, true
	},
	"gemma-embedding": func(c *model.Config) {
		c.Bidirectional, c.Pooling, c.Dense = true, model.MeanPooling, []int{384, 256}
		c.Windows, c.RopeBase = model.Windows{Size: 256, Period: 6, Base: 1e4}, 1e6
	},
	"qwen3-embedding": func(c *model.Config) { c.Arch, c.Pooling = "qwen3", model.LastPooling },
	"qwen3-rerank": func(c *model.Config) {
		c.Arch, c.Pooling, c.Scoring = "qwen3", model.LastPooling, model.Scoring{Count: 2, Share: true}
	},
}

// everyLayer returns n for each layer, and last for the last layer of each period.
func everyLayer(layers, period, n, last int) (out []int) {
	for _, is := range model.LastOf(layers, period) {
		if out = append(out, n); is {
			out[len(out)-1] = last
		}
	}
	return out
}

// deltaTiny changes a small model to have layers with a delta rule, and heads of which half
// rotates.
func deltaTiny(c *model.Config, joined bool, e model.Experts) {
	c.RopeBase, c.RopeDim, c.Experts, c.Tied = 1e7, 16, e, e.Count == 0
	c.Recurrence = model.Recurrence{Conv: 4, KeyHeads: 2, ValueHeads: 4, KeyDim: 32, ValueDim: 32, Every: 4,
		Joined: joined}
}

// encoderTiny changes a small model to an encoder like BERT.
func encoderTiny(c *model.Config) {
	c.KVHeads, c.Bidirectional, c.Types, c.Pooling, c.Eps = c.Heads, true, 2, model.MeanPooling, 1e-12
}

var graniteScales = model.Scales{Embed: 12, Residual: 0.25, Attn: 0.125, Logits: 8}

// Tiny returns the small model of a family, which is also the preset FAMILY-tiny. It returns false
// for an unknown family.
func Tiny(family string) (model.Config, bool) {
	change, ok := families[strings.ToLower(family)]
	if !ok {
		return model.Config{}, false
	}
	c := model.Config{Name: strings.ToLower(family) + "-tiny", Arch: strings.ToLower(family), Eps: 1e-5, RopeBase: 1e4,
		Dims: model.Dims{Hidden: 256, Layers: 6, Heads: 8, KVHeads: 2, HeadDim: 32, FFN: 512, Vocab: 4096,
			Context: 4096}}
	change(&c)
	return c, true
}

// Families returns the sorted names that Tiny accepts.
func Families() []string { return slices.Sorted(maps.Keys(families)) }

// Small returns a configuration of a family with two layers, for tests: the first and the last
// layer of Tiny. An architecture without a small model gets the sizes of llama.
func Small(family string) model.Config {
	c, ok := Tiny(family)
	if !ok {
		c, _ = Tiny("llama")
		c.Arch = family
	}
	c.Name, c.Layers, c.Vocab, c.Context, c.Tied = "small", 2, 600, 128, false
	c.SharedKV, c.FFNOf, c.KVHeadsOf = 0, ends(c.FFNOf), ends(c.KVHeadsOf)
	c.Windows.Layers, c.NoValues = ends(c.Windows.Layers), ends(c.NoValues)
	if family == "qwen3moe" {
		c.Experts = model.Experts{Count: 4, Used: 2, FFN: 256}
	}
	return c
}

// ends returns the first and the last element of a list, nil if it is nil.
func ends[T any](list []T) []T {
	if list == nil {
		return nil
	}
	return []T{list[0], list[len(list)-1]}
}
