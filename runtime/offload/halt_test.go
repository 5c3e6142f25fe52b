package offload

import (
	"testing"
	"time"

	"sandwich/runtime/device"
	"sandwich/runtime/device/sim"
	"sandwich/runtime/kvcache"
)

// TestHaltsInterleaved checks that two forwards that halt after every segment, one on each set of
// activations and each in the halts of the other, have the bits of the cores, in two chunks each.
func TestHaltsInterleaved(t *testing.T) {
	f := testFile(t, "llama", true)
	plan := testPlan(t, f, "int8")
	dev := sim.New(sim.Config{Unified: true, Sharing: device.Imported})
	defer dev.Close()
	first := open(t, f, plan, dev)
	second := *first
	second.seq, second.batch = first.cache.Open(kvcache.Salt{}), kvcache.Batch{}
	cores := [2]*rig{open(t, f, plan, nil), open(t, f, plan, nil)}
	tokens := testTokens(2*20+2*3, 331)
	for _, rows := range [][2]int{{20, 3}, {3, 20}} {
		rigs, parts := [2]*rig{first, &second}, [2][]int32{}
		for i, g := range rigs {
			parts[i] = tokens[:rows[i]]
			tokens = tokens[rows[i]:]
			g.describe(parts[i])
		}
		var next, halts [2]int
		for ops := len(first.a.Model.Ops); next[0] < ops || next[1] < ops; {
			for i, g := range rigs {
				if next[i] == ops {
					continue
				}
				at, err := g.runner.Forward(t.Context(), i, &g.batch, next[i], time.Nanosecond, always{}, nil)
				if err != nil || at <= next[i] || at > next[i]+inFlight && at < ops {
					t.Fatalf("set %d: from op %d to %d: %v", i, next[i], at, err)
				}
				if next[i] = at; at < ops {
					halts[i]++
					continue
				}
				var got [][]float32
				for row := range parts[i] {
					got = append(got, append([]float32(nil), g.runner.Logits(row)...))
				}
				g.advance(parts[i])
				sameLogits(t, "interleaved", got, cores[i].feed(parts[i], false))
			}
		}
		if least := len(first.a.Model.Ops)/inFlight - 1; halts[0] < least || halts[1] < least {
			t.Errorf("halts %v, want at least %d each", halts, least)
		}
	}
}
