package synth

import (
	"reflect"
	"testing"

	"sandwich/runtime/gguf"
	"sandwich/runtime/model"
	"sandwich/runtime/model/arch"
)

// TestConfigRoundTrip checks that the configuration that is read from a file equals the one that
// was written.
func TestConfigRoundTrip(t *testing.T) {
	for name, change := range map[string]func(*model.Config){
		"llama":    func(*model.Config) {},
		"qwen2":    func(c *model.Config) { c.RopeScale = 0.25 },
		"qwen3":    func(c *model.Config) { c.RopeDim, c.Tied = 16, true },
		"qwen3moe": func(c *model.Config) { c.RopeBase = 5e5 },
	} {
		want := Small(name)
		change(&want)
		f, err := gguf.Parse(synth(t, want, gguf.F32, 1))
		if err != nil {
			t.Fatal(err)
		}
		got, err := arch.ConfigOf(f)
		if err != nil {
			t.Fatal(err)
		}
		want.Name, want.Eps = got.Name, float64(float32(want.Eps))
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
}
