package engine

import (
	"fmt"
	"testing"
	"time"

	"sandwich/runtime/device/sim"
	"sandwich/runtime/engine/traffic"
	"sandwich/runtime/phase"
)

// TestDeviceSwitches checks that requests get the same tokens with each part of the dispatch to a
// device switched off, and with forwards that always contend for memory.
func TestDeviceSwitches(t *testing.T) {
	list := deviceRequests(3)
	if raceEnabled {
		list = list[:2] // race builds interpret device programs slowly
	}
	for i := range list {
		list[i].MaxTokens = 3
		for k := range 64 - 32*i {
			list[i].Prompt = append(list[i].Prompt, int32((11*i+17*k)%90+2))
		}
	}
	options := func() Options {
		o := deviceOptions(t)
		o.Plan.Chunk = 96
		return o
	}
	want := allTokens(t, open(t, options()), list)
	for name, off := range map[string]func(o *Options){
		"all":                    func(*Options) {},
		"elastic split":          func(o *Options) { o.Accelerator.Divide = false },
		"disaggregation":         func(o *Options) { o.Accelerator.Phases = phase.All[:] },
		"preemption":             func(o *Options) { o.NoPreemption = true },
		"piggybacking":           func(o *Options) { o.NoPiggyback, o.Aging = true, 50*time.Millisecond },
		"bandwidth-aware":        func(o *Options) { o.Accelerator.IgnoreTraffic = true },
		"background":             func(o *Options) { o.Accelerator.Static = false },
		"decode on the device":   func(o *Options) { o.Accelerator.Phases = []phase.Phase{phase.Decode} },
		"always bound by memory": func(*Options) {},
	} {
		t.Run(name, func(t *testing.T) {
			dev := sim.New(sim.Config{Unified: true})
			t.Cleanup(func() { dev.Close() })
			o := options()
			o.Accelerator = DeviceOptions{Device: dev, Name: "sim", Phases: []phase.Phase{phase.Prefill},
				Divide: true, Static: true, Lost: func(err error) { t.Errorf("the device is lost: %v", err) }}
			off(&o)
			e := open(t, o)
			separate := fmt.Sprint(o.Accelerator.Phases) != fmt.Sprint(phase.All[:])
			if has := e.traffic != nil; has != (separate && !o.Accelerator.IgnoreTraffic) {
				t.Errorf("traffic is measured: %v", has)
			}
			asked := 0
			if name == "always bound by memory" {
				e.contend = func(cores, device traffic.Work) bool {
					asked++
					if cores.Takes <= 0 || device.Takes <= 0 || cores.Positions <= 0 || device.Positions <= 0 {
						t.Errorf("%+v and %+v", cores, device)
					}
					return true
				}
			}
			sameTokens(t, allTokens(t, e, list), want)
			if name == "always bound by memory" && asked == 0 {
				t.Error("no forwards were compared")
			}
		})
	}
}
