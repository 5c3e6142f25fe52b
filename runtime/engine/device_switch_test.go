package engine

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sandwich/runtime/api"
	"sandwich/runtime/device"
	"sandwich/runtime/device/sim"
	"sandwich/runtime/engine/traffic"
	"sandwich/runtime/offload/split"
	"sandwich/runtime/phase"
)

// TestDeviceSwitches checks that requests get the same tokens with each part of the dispatch to a
// device switched off, and with forwards that always contend for memory.
func TestDeviceSwitches(t *testing.T) {
	skipUnderRace(t)
	list := deviceRequests(2)
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
			// The device begins when all requests are queued, so that they run together.
			var armed atomic.Bool
			var queued sync.WaitGroup
			dev := sim.New(sim.Config{Unified: true, Fault: func(device.Ticket) sim.Fault {
				if armed.Load() {
					queued.Wait()
				}
				return sim.None
			}})
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
			all := slices.Clone(list)
			queued.Add(len(all))
			for i := range all {
				all[i].Queued = func(api.Queue) { queued.Done() }
			}
			armed.Store(true)
			sameTokens(t, allTokens(t, e, all), want)
			if name == "always bound by memory" && asked == 0 {
				t.Error("no forwards were compared")
			}
		})
	}
}

// TestDeviceDividesProactive checks that a proactive prompt that the device and the cores compute
// together halts for a reactive one and resumes where it halted, with the same tokens, also if the
// device is lost while the prompt is halted.
func TestDeviceDividesProactive(t *testing.T) {
	list := deviceRequests(4)
	long := func(i int) (r api.Request) {
		r = api.Request{MaxTokens: 3, Class: api.Proactive}
		for k := range 70 {
			r.Prompt = append(r.Prompt, int32((i+17*k)%90+2))
		}
		return r
	}
	first, slow, quick := long(1), long(2), list[2]
	quick.MaxTokens = 3
	options := func(a DeviceOptions) Options {
		o := deviceOptions(t)
		o.Plan.Chunk, o.Accelerator = 128, a
		return o
	}
	want := allTokens(t, open(t, options(DeviceOptions{})), []api.Request{slow, quick})
	for _, lost := range []bool{false, true} {
		t.Run(fmt.Sprint("lost ", lost), func(t *testing.T) {
			var armed atomic.Bool
			var submitted atomic.Int64
			now, arrived := make(chan struct{}), make(chan struct{})
			dev := sim.New(sim.Config{Fault: func(device.Ticket) sim.Fault {
				if !armed.Load() {
					return sim.None
				}
				n := submitted.Add(1)
				if n == 2 { // of the proactive prompt
					close(now)
					<-arrived
				}
				if lost && n == 4 { // while it is halted
					return sim.Crash
				}
				return sim.None
			}})
			t.Cleanup(func() { dev.Close() })
			e := open(t, options(DeviceOptions{Device: dev, Name: "sim", Phases: []phase.Phase{phase.Prefill},
				Divide: true}))
			allTokens(t, e, []api.Request{first}) // measures the device
			e.mu.Lock()
			e.lanes.divided.balance = split.Balance{}
			e.lanes.divided.balance.LearnDevice(1, time.Hour) // the cores compute as much as possible
			e.mu.Unlock()
			armed.Store(true)
			r := quick
			r.Queued = func(api.Queue) { close(arrived) }
			var got [2][][]int32
			var wait sync.WaitGroup
			wait.Go(func() { got[0] = allTokens(t, e, []api.Request{slow}) })
			<-now
			wait.Go(func() { got[1] = allTokens(t, e, []api.Request{r}) })
			wait.Wait()
			sameTokens(t, append(got[0], got[1]...), want)
			e.mu.Lock()
			defer e.mu.Unlock()
			if e.counts.Divided == 0 || e.counts.LostDevices > 0 != lost || !lost && e.lanes.divided.resumes == 0 {
				t.Errorf("%d prompts were divided, %d resumed, %d devices lost, %d submissions", e.counts.Divided,
					e.lanes.divided.resumes, e.counts.LostDevices, submitted.Load())
			}
		})
	}
}
