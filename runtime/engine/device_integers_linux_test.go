package engine

import (
	"fmt"
	"testing"
	"time"

	"sandwich/microkernel"
	"sandwich/plans/heuristic"
	"sandwich/profiles"
	"sandwich/runtime/device"
	"sandwich/runtime/gguf"
	"sandwich/runtime/model"
	"sandwich/runtime/model/modelshape"
	"sandwich/runtime/phase"
)

// integersOptions returns options for a model of two layers under a plan whose weights use path
// int8-k as far as they can.
func integersOptions(t *testing.T, arch string) Options {
	t.Helper()
	c := model.Config{Name: "tiny", Arch: arch, Eps: 1e-5, RopeBase: 10000,
		Dims: model.Dims{Hidden: 256, Layers: 2, Heads: 4, KVHeads: 2, HeadDim: 32, FFN: 256, Vocab: tinyVocab,
			Context: 256}}
	if arch == "qwen3moe" {
		c.Experts = model.Experts{Count: 4, Used: 2, FFN: 256}
	}
	o := optionsFor(t, fileOf(t, c, gguf.Q4_K))
	profile, err := profiles.Live()
	if err != nil {
		t.Fatal(err)
	}
	shape, err := modelshape.Of(o.File)
	if err != nil {
		t.Fatal(err)
	}
	path := microkernel.ComputeInt8K
	o.Plan, err = heuristic.Default(profile, shape, heuristic.Options{Attend: "f32", Threads: 1, Compute: path.String(),
		Device: true})
	if err != nil {
		t.Fatal(err)
	}
	used := 0
	for _, w := range o.Plan.Weights {
		if w.Compute == path {
			used++
		}
	}
	if used < 2 {
		t.Fatalf("%d weights use path %s: %v", used, path, o.Plan.Weights)
	}
	o.Plan.Chunk, o.Bound = 32, time.Millisecond
	return o
}

// TestDeviceIntegers checks that requests get the tokens of the cores if a device of this host,
// such as Mesa's Vulkan driver for CPUs, computes weights of path int8-k in any placement of the
// phases.
func TestDeviceIntegers(t *testing.T) {
	skipUnderRace(t)
	var dev device.Device
	for _, found := range device.List(t.Context()) {
		if found.Err != nil {
			continue
		}
		d, err := device.Open(t.Context(), found.ID)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { d.Close() })
		if d.Info().Exact == device.AllExact {
			dev = d
			break
		}
	}
	if dev == nil {
		t.Skip("this host has no exact device; install a Vulkan driver such as mesa-vulkan-drivers")
	}
	list := deviceRequests(2)
	for _, arch := range []string{"llama", "qwen3moe"} {
		want := allTokens(t, open(t, integersOptions(t, arch)), list)
		for _, phases := range [][]phase.Phase{{phase.Prefill}, {phase.Decode}, phase.All[:]} {
			if arch == "qwen3moe" && len(phases) < phase.Count {
				continue
			}
			t.Run(fmt.Sprint(arch, phases), func(t *testing.T) {
				o := integersOptions(t, arch)
				o.Accelerator = DeviceOptions{Device: dev, Name: "host", Phases: phases,
					ExpertsOnCores: arch == "qwen3moe",
					Lost:           func(err error) { t.Errorf("the device is lost: %v", err) }}
				sameTokens(t, allTokens(t, open(t, o), list), want)
			})
		}
	}
}
