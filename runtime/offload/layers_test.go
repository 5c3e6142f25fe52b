package offload

import (
	"fmt"
	"testing"

	"sandwich/runtime/device/sim"
)

// TestLayers checks that a device that computes only the first layers gives the bits of the cores,
// also where it halts after every segment and op, and that it takes less memory.
func TestLayers(t *testing.T) {
	for arch, most := range map[string]int{"llama": 2, "gemma3": 6} {
		f := testFile(t, arch, true)
		plan := testPlan(t, f, "int8")
		cores := open(t, f, plan, nil)
		used, before := map[int]uint64{}, 0
		for _, layers := range []int{1, most - 1, 0} {
			dev := sim.New(sim.Config{MemoryBytes: 1 << 30})
			t.Cleanup(func() { dev.Close() })
			both := openWith(t, f, plan, Options{Device: dev, Rows: testRows, Layers: layers})
			used[layers] = 1<<30 - dev.Info().FreeBytes
			if layers > 0 {
				cores = open(t, f, plan, nil)
				tokens := testTokens(24, 331)
				for i, step := range []struct {
					n              int
					device, halted bool
				}{{10, true, true}, {5, false, false}, {1, true, false}, {8, true, false}} {
					both.everyGap = step.halted
					chunk := tokens[both.pos:][:step.n]
					sameLogits(t, fmt.Sprintf("%s, %d layers, chunk %d", arch, layers, i),
						both.feed(chunk, step.device), cores.feed(chunk, false))
				}
			}
			if layers > before && used[layers] < used[before] || layers == 0 && used[0] < used[most-1] {
				t.Errorf("%s: %d layers take %d bytes, of %v", arch, layers, used[layers], used)
			}
			before = layers
		}
		last := 0
		for free := uint64(1 << 16); free < 1<<24; free *= 2 {
			dev := sim.New(sim.Config{MemoryBytes: free})
			t.Cleanup(func() { dev.Close() })
			o := Options{Device: dev, Assembly: cores.a, Rows: testRows, LogitRows: testRows, Sets: 2, Context: 512}
			o.Layers = Fit(o)
			if o.Layers < last {
				t.Errorf("%s: %d layers fit into %d bytes, and %d into half of it", arch, o.Layers, free, last)
			}
			if last = o.Layers; last == 0 {
				continue
			}
			r, err := Open(o)
			if err != nil {
				t.Fatalf("%s: %d layers in %d bytes: %v", arch, last, free, err)
			}
			if err := r.Close(); err != nil || dev.Info().FreeBytes != free {
				t.Errorf("%v, %d of %d bytes are free", err, dev.Info().FreeBytes, free)
			}
		}
		if last != most-1 {
			t.Errorf("%s: %d layers fit into much memory, want %d", arch, last, most-1)
		}
	}
	f := testFile(t, "llama", true)
	g := open(t, f, testPlan(t, f, "int8"), nil)
	dev := sim.New(sim.Config{})
	defer dev.Close()
	if _, err := Open(Options{Device: dev, Assembly: g.a, Rows: 8, LogitRows: 1, Sets: 1, Layers: 2}); err == nil {
		t.Error("2 of 2 layers were accepted as a part")
	}
}
