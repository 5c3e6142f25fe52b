package synth

import (
	"strings"
	"testing"

	"sandwich/runtime/gguf"
	"sandwich/runtime/model"
	"sandwich/runtime/model/arch"
	"sandwich/runtime/model/modelshape"
)

// parameters counts the elements that a configuration's published parameter count counts.
func parameters(c model.Config) (n int64) {
	for _, s := range modelshape.Tensors(c) {
		if s.Fixed == nil {
			n += int64(s.Dims[0]) * int64(s.Rows())
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
		// without biases, which a file may lack
		"glm4-9b":        9_400_279_040 - 40*(4096+2*256),
		"ministral-3-3b": 3_429_006_336, // "3.4B"
		// "5.1B" with the encoders of images and sounds
		"gemma4-e2b":     4_628_569_344,
		"gemma4-26b-a4b": 25_233_137_920, // "25.2B"
		// with the biases of the router
		"lfm2-8b-a1b": 8_339_929_856 + 22*32,
		"lfm2-1.2b":   1_170_340_608, "qwen3.5-0.8b": 752_393_024, "qwen3.5-4b": 4_205_751_296, // texts alone
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
		if err := arch.Check(c); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if got := parameters(c); got != published[name] {
			t.Errorf("%s has %d parameters, the published model %d", name, got, published[name])
		}
		for _, typ := range allTypes {
			s, err := Shape(c, Uniform(typ))
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

// TestTypeFallback checks that rows that are not whole blocks have a simpler type.
func TestTypeFallback(t *testing.T) {
	c, err := Preset("llama-1.3b") // ffn 5504 is no multiple of 256
	if err != nil {
		t.Fatal(err)
	}
	s, err := Shape(c, Uniform(gguf.Q4_K))
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
