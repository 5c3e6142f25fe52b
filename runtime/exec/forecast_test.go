package exec

import (
	"testing"

	"sandwich/runtime/gguf"
	"sandwich/runtime/mem"
	"sandwich/runtime/model/modelfile"
	"sandwich/runtime/model/synth"
)

// TestForecastMemory checks the forecast of each rank against the memory of the loaded model.
func TestForecastMemory(t *testing.T) {
	for _, c := range []struct {
		family string // "" for a small llama
		ranks  int
	}{{"", 1}, {"", 2}, {"gemma3", 1}, {"gemma3", 2}, {"gemma4", 1}, {"gemma4-moe", 1}, {"gpt-oss", 2}} {
		ranks := c.ranks
		o := smallOptions(t, ranks)
		if small, ok := synth.Tiny(c.family); ok {
			o.File, o.Plan = configFile(t, small, gguf.F32, ranks)
		}
		o.Blocks, o.LogitRows, o.Sequences = 30, 5, 2
		said, err := ForecastMemory(o)
		if err != nil {
			t.Fatal(err)
		}
		a, err := Open(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		if c.family != "" && len(a.Stores) < 2 {
			t.Errorf("%s has %d stores", c.family, len(a.Stores))
		}
		if len(said) != ranks {
			t.Fatalf("%d ranks: %v", ranks, said)
		}
		cache := int64(0)
		for r, f := range said {
			cache += f.KV
			for _, x := range []struct {
				what string
				said int64
				held *mem.Buffer
			}{{"weights", f.Weights, a.Weights.Memory(r)}, {"KV cache", f.KV, a.KV.Memory(r)},
				{"activations", f.Activations, a.Buffers.Memory(r)}} {
				// Buffers end at a page, and quantized rows are at most as long as the row.
				held, page := int64(x.held.Len()), int64(mem.PageSize())
				if huge := int64(2 << 20); held%huge == 0 {
					page = huge
				}
				if x.said <= held-page || x.said > held+held/8 {
					t.Errorf("%d ranks, rank %d: %s: %d bytes forecast, %d allocated", ranks, r, x.what, x.said, held)
				}
			}
		}
		if held := a.Shards.KVBytes(o.Plan.KV, a.Stores); cache != held {
			t.Errorf("%s in %d ranks: a cache of %d bytes forecast, %d allocated", c.family, ranks, cache, held)
		}
		a.Close()
	}
}

// TestWindowWiderThanTheContext checks that a window takes no more memory than the context.
func TestWindowWiderThanTheContext(t *testing.T) {
	c, _ := synth.Tiny("gemma3")
	bounded := func(window int) int64 {
		c.Windows.Size = window
		file, _ := configFile(t, c, gguf.F32, 1)
		m, err := modelfile.Load(file)
		if err != nil {
			t.Fatal(err)
		}
		takes, refused := MemoryOf(m)
		if len(refused) > 0 {
			t.Fatal(refused)
		}
		return takes.Bounded
	}
	if usual, most := bounded(256), bounded(1_000_000); usual*16 < most || most != bounded(c.Context) {
		t.Errorf("%d bytes with a window of 256, %d with one of a million positions", usual, most)
	}
}
