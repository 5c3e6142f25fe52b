package offload

import (
	"fmt"
	"testing"

	"sandwich/runtime/device"
	_ "sandwich/runtime/device/cuda"
	_ "sandwich/runtime/device/vulkan"
)

// TestHostDevices checks that the exact devices of this host, such as a GPU or Mesa's Vulkan driver
// for CPUs, give the bits of the cores, alone and in wavefronts.
func TestHostDevices(t *testing.T) {
	f := testFile(t, "qwen3", true)
	plan := testPlan(t, f, "int8")
	tested := 0
	for _, found := range device.List(t.Context()) {
		if found.Err != nil {
			t.Logf("%s: %v", found.ID, found.Err)
			continue
		}
		dev, err := device.Open(t.Context(), found.ID)
		if err != nil {
			t.Errorf("%s: %v", found.ID, err)
			continue
		}
		if e := dev.Info().Exact; e != device.AllExact {
			t.Logf("%s: exact are only %s", found.ID, e)
			dev.Close()
			continue
		}
		tested++
		t.Run(found.ID, func(t *testing.T) {
			t.Cleanup(func() { dev.Close() })
			cores, both := open(t, f, plan, nil), open(t, f, plan, dev)
			tokens := testTokens(2*testRows+6, 331)
			for i, step := range []struct {
				rows     int
				onDevice bool
			}{{testRows, true}, {1, true}, {5, false}, {testRows, true}} {
				chunk := tokens[both.pos:][:step.rows]
				both.everyGap = i == 0 // halts after every segment
				sameLogits(t, fmt.Sprintf("chunk %d", i), both.feed(chunk, step.onDevice), cores.feed(chunk, false))
			}
			t.Run("wavefront", func(t *testing.T) { testWavefront(t, dev) })
		})
	}
	if tested == 0 {
		t.Skip("this host has no exact device; install a Vulkan driver such as mesa-vulkan-drivers")
	}
}
