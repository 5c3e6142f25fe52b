package offload

import (
	"flag"
	"fmt"
	"testing"

	"sandwich/runtime/device"
	_ "sandwich/runtime/device/cuda"
	_ "sandwich/runtime/device/vulkan"
)

// withoutSharing is a device that shares no memory with the cores.
type withoutSharing struct{ device.Device }

func (d withoutSharing) Info() device.Info {
	i := d.Device.Info()
	i.Sharing = device.NotShared
	return i
}

var everyFamily = flag.Bool("families", false, "TestHostDevices tests all families and halts every forward")

// TestHostDevices checks that the exact devices of this host, such as a GPU or Mesa's Vulkan driver
// for CPUs, give the bits of the cores, alone, in wavefronts, and with experts on the cores, with
// memory that they share with the cores if they can, and with copies.
func TestHostDevices(t *testing.T) {
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
			families := []string{"qwen3", "qwen3moe", "gpt-oss"}
			if *everyFamily {
				families = append(families, "llama", "qwen2", "gemma3", "qwen2moe")
			}
			for _, arch := range families {
				t.Run(arch, func(t *testing.T) {
					testChunks(t, dev, arch)
					testChunks(t, withoutSharing{dev}, arch)
				})
			}
			t.Run("wavefront", func(t *testing.T) { testWavefront(t, dev, wavefrontChunks...) })
		})
	}
	if tested == 0 {
		t.Skip("this host has no exact device; install a Vulkan driver such as mesa-vulkan-drivers")
	}
}

// testChunks compares chunks on a device and on the cores with those of the cores alone.
func testChunks(t *testing.T, dev device.Device, arch string) {
	f := testFile(t, arch, true)
	plan := testPlan(t, f, "int8")
	cores, both := open(t, f, plan, nil), open(t, f, plan, dev)
	info := dev.Info()
	if shares := info.Unified && info.Sharing != device.NotShared; shares != (both.runner.Copied() == 0) {
		t.Errorf("%s; the device has %d bytes of copies", info.Sharing, both.runner.Copied())
	}
	tokens := testTokens(2*testRows+7, 331)
	for i, step := range []struct {
		rows     int
		onDevice bool
	}{{testRows, true}, {1, true}, {1, true}, {5, false}, {testRows, true}} {
		chunk := tokens[both.pos:][:step.rows]
		both.everyGap = i == 0 || *everyFamily // halts after every segment
		sameLogits(t, fmt.Sprintf("chunk %d", i), both.feed(chunk, step.onDevice), cores.feed(chunk, false))
	}
}
