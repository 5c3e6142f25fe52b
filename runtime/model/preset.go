package model

import (
	"fmt"
	"slices"
	"strings"
)

// presets are the models that people run and papers measure, by their public configurations.
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
}

func llamaPreset(name string, d Dims) Config {
	return Config{Name: name, Arch: "llama", Dims: d, Eps: 1e-5, RopeBase: 1e4}
}

func llama3Preset(name string, tied bool, factor float64, d Dims) Config {
	return Config{Name: name, Arch: "llama", Dims: d, Eps: 1e-5, RopeBase: 5e5, Tied: tied,
		Llama3: &Llama3Rope{Factor: factor, Low: 1, High: 4, Original: 8192}}
}

func qwen3Preset(name string, d Dims) Config {
	return Config{Name: name, Arch: "qwen3", Dims: d, Eps: 1e-6, RopeBase: 1e6, Tied: true}
}

// Preset returns a well-known model's configuration by name; case is ignored.
func Preset(name string) (Config, error) {
	i := slices.IndexFunc(presets, func(c Config) bool { return strings.EqualFold(c.Name, name) })
	if i < 0 {
		return Config{}, fmt.Errorf("no preset is called %q; there are %s", name, strings.Join(PresetNames(), ", "))
	}
	return presets[i], nil
}

// PresetNames lists the presets, smallest family first.
func PresetNames() []string {
	names := make([]string, len(presets))
	for i, c := range presets {
		names[i] = c.Name
	}
	return names
}
