package engine

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sandwich/microkernel/devgen"
	"sandwich/plans/heuristic"
	"sandwich/profiles"
	"sandwich/runtime/api"
	"sandwich/runtime/device"
	"sandwich/runtime/device/sim"
	"sandwich/runtime/engine/forward"
	"sandwich/runtime/model/modelshape"
	"sandwich/runtime/offload/unified"
	"sandwich/runtime/phase"
	"sandwich/runtime/pool"
)

// deviceOptions returns options for a small model under a plan that a device supports.
func deviceOptions(t *testing.T) Options {
	t.Helper()
	return onDevice(t, tinyOptions(t))
}

// onDevice returns options with a plan that a device supports.
func onDevice(t *testing.T, o Options) Options {
	t.Helper()
	profile, err := profiles.Live()
	if err != nil {
		t.Fatal(err)
	}
	shape, err := modelshape.Of(o.File)
	if err != nil {
		t.Fatal(err)
	}
	if o.Plan, err = heuristic.Default(profile, shape, heuristic.Options{Attend: "f32", Threads: 1}); err != nil {
		t.Fatal(err)
	}
	o.Plan.Chunk, o.Bound = 32, time.Millisecond
	return o
}

// deviceRequests returns n requests of both classes with prompts of several lengths.
func deviceRequests(n int) (list []api.Request) {
	for i := range n {
		r := api.Request{MaxTokens: 6 + i%5, Class: api.Class(i % 2), Sampling: api.Sampling{Temperature: 0}}
		for k := range 9 + 23*(i%4) {
			r.Prompt = append(r.Prompt, int32((7*i+13*k)%90+2))
		}
		list = append(list, r)
	}
	return list
}

// allTokens runs the requests at once and returns the tokens of each.
func allTokens(t *testing.T, e *Engine, list []api.Request) [][]int32 {
	t.Helper()
	out := make([][]int32, len(list))
	var wait sync.WaitGroup
	for i := range list {
		wait.Go(func() {
			_, err := e.Generate(t.Context(), list[i], func(tok api.Token) error {
				out[i] = append(out[i], tok.ID)
				return nil
			})
			if err != nil {
				var internal *InternalError
				if errors.As(err, &internal) {
					t.Logf("%s", internal.Stack)
				}
				t.Errorf("request %d: %v", i, err)
			}
		})
	}
	wait.Wait()
	return out
}

func sameTokens(t *testing.T, got, want [][]int32) {
	t.Helper()
	for i := range want {
		if !slices.Equal(got[i], want[i]) {
			t.Errorf("request %d: tokens %v, alone on the cores %v", i, got[i], want[i])
		}
	}
}

// share lets the engine and its device use the same memory where the device can.
func (o *Options) share() {
	equal := func(device.Device, unified.Load) (unified.Rates, error) {
		return unified.Rates{Private: 1, Shared: 1}, nil
	}
	shared := unified.New(o.Accelerator.Device, unified.Load{}, equal)
	o.Accelerator.Memory, o.Options.Memory = shared, shared.Alloc
}

// TestDeviceLanes checks that requests get the same tokens whichever phases a device runs and
// whichever way it shares memory, and that the device runs them.
func TestDeviceLanes(t *testing.T) {
	list := deviceRequests(8)
	if raceEnabled {
		list = list[:3] // race builds interpret device programs slowly
	}
	want := allTokens(t, open(t, deviceOptions(t)), list)
	for i, phases := range [][]phase.Phase{{phase.Prefill}, phase.All[:], {phase.Decode}} {
		sharing := []device.Sharing{device.NotShared, device.Imported, device.Exported}[i]
		t.Run(fmt.Sprint(phases, sharing), func(t *testing.T) {
			dev := sim.New(sim.Config{Unified: true, Sharing: sharing})
			t.Cleanup(func() { dev.Close() })
			note, o := "", deviceOptions(t)
			o.Accelerator = DeviceOptions{Device: dev, Name: "sim:7", Phases: phases,
				Note: func(text string) { note = text },
				Lost: func(err error) { t.Errorf("the device is lost: %v", err) }}
			o.share()
			o.Observe = func(f Forward) {
				of := phase.Decode
				if f.Prefill {
					of = phase.Prefill
				}
				want := "cores"
				if slices.Contains(phases, of) {
					want = "sim:7"
				}
				if f.Lane != want || f.Ended.Before(f.Began) || f.Began.IsZero() {
					t.Errorf("%s on lane %s from %v to %v, want lane %s", of, f.Lane, f.Began, f.Ended, want)
				}
			}
			e := open(t, o)
			sameTokens(t, allTokens(t, e, list), want)
			sameTokens(t, allTokens(t, e, list), want) // with cached prefixes
			if once := sharing != device.NotShared; once != strings.Contains(note, "exist once") ||
				once == strings.Contains(note, "a second copy of") {
				t.Errorf("note %q", note)
			}
			if e.Stats().Counts.Prefills == 0 || e.onDevice.took == 0 {
				t.Error("nothing ran on the device")
			}
		})
	}
}

// TestDeviceChoice checks that a device runs the phases in which it is measured to be faster, and
// is not used if it is slower in both.
func TestDeviceChoice(t *testing.T) {
	dev := sim.New(sim.Config{})
	t.Cleanup(func() { dev.Close() })
	list := deviceRequests(3)
	if raceEnabled {
		list = list[:1] // race builds interpret device programs slowly
	}
	want := allTokens(t, open(t, deviceOptions(t)), list)
	times := func(prefill, decode time.Duration) *DeviceTimes {
		return &DeviceTimes{Rows: 1, Cores: [phase.Count]time.Duration{2, 2},
			Device: [phase.Count]time.Duration{phase.Prefill: prefill, phase.Decode: decode}}
	}
	for name, c := range map[string]struct {
		measured *DeviceTimes // nil: those of this host
		phases   []phase.Phase
	}{
		"this host":        {nil, nil},
		"slower in both":   {times(3, 3), nil},
		"faster in decode": {times(3, 1), []phase.Phase{phase.Decode}},
	} {
		t.Run(name, func(t *testing.T) {
			var got DeviceTimes
			var chosen []phase.Phase
			o := deviceOptions(t)
			o.Accelerator = DeviceOptions{Device: dev, Name: "sim", measured: c.measured,
				Chose: func(t DeviceTimes, phases []phase.Phase) { got, chosen = t, phases }}
			e := open(t, o)
			if c.measured == nil {
				c.phases = got.faster()
			}
			for _, p := range phase.All {
				if got.Rows <= 0 || got.Cores[p] <= 0 || got.Device[p] <= 0 {
					t.Errorf("measured %+v", got)
				}
			}
			if !slices.Equal(chosen, c.phases) || (e.onDevice.device != nil) != (len(c.phases) > 0) {
				t.Errorf("the device is used: %v, for %v; measured: %s", e.onDevice.device != nil, chosen, got)
			}
			sameTokens(t, allTokens(t, e, list), want)
		})
	}
}

// TestDeviceShared checks two engines that want one device: the second one uses the memory that is
// left, or is refused with the numbers, or runs on the cores with one sentence.
func TestDeviceShared(t *testing.T) {
	list := deviceRequests(3)
	want := allTokens(t, open(t, deviceOptions(t)), list)
	const enough = 1 << 30
	dev := sim.New(sim.Config{MemoryBytes: enough})
	t.Cleanup(func() { dev.Close() })
	options := func(dev device.Device) Options {
		o := deviceOptions(t)
		o.Accelerator = DeviceOptions{Device: dev, Name: "sim", Phases: []phase.Phase{phase.Prefill}}
		return o
	}
	first, second := open(t, options(dev)), open(t, options(dev))
	need := (enough - dev.Info().FreeBytes) / 2
	sameTokens(t, allTokens(t, first, list), want)
	sameTokens(t, allTokens(t, second, list), want)
	if first.onDevice.device == nil || second.onDevice.device == nil {
		t.Error("a device with memory for two engines is not used by both")
	}
	small := sim.New(sim.Config{MemoryBytes: need * 3 / 2})
	t.Cleanup(func() { small.Close() })
	open(t, options(small))
	if _, err := New(t.Context(), options(small)); !errors.Is(err, device.ErrMemory) {
		t.Errorf("the second engine on a device with memory for one: %v", err)
	}
	if free := small.Info().FreeBytes; free < need/4 {
		t.Errorf("the refused engine holds memory: %d bytes are free", free)
	}
	o, sentences := options(small), 0
	o.Accelerator.Optional = true
	o.Accelerator.Refused = func(err error) {
		if sentences++; !errors.Is(err, device.ErrMemory) {
			t.Errorf("the sentence is %v", err)
		}
	}
	on := open(t, o)
	sameTokens(t, allTokens(t, on, list), want)
	if sentences != 1 || on.onDevice.device != nil {
		t.Errorf("%d sentences; the device is used: %v", sentences, on.onDevice.device != nil)
	}
}

// TestDeviceRefused checks that an engine refuses a device that cannot hold the model.
func TestDeviceRefused(t *testing.T) {
	dev := sim.New(sim.Config{MemoryBytes: 1 << 12})
	t.Cleanup(func() { dev.Close() })
	o := deviceOptions(t)
	o.Accelerator = DeviceOptions{Device: dev, Name: "sim", Phases: []phase.Phase{phase.Prefill}}
	if _, err := New(t.Context(), o); err == nil {
		t.Error("a device of 4 KiB was accepted")
	}
}

// TestAccelerator checks that a sequence without a scheduler has the logits of the cores whichever
// phases run on a device.
func TestAccelerator(t *testing.T) {
	o := deviceOptions(t)
	o.LogitRows, o.Blocks = 1, 4
	r, err := forward.Open(t.Context(), o.Options)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	prompt := deviceRequests(3)[2].Prompt
	run := func(a *Accelerator) (all []float32) {
		r.Lead(func(l *pool.Leader) {
			s := NewSequence(r, l)
			s.Through(t.Context(), a)
			keep := func(_ int, logits []float32) error {
				all = append(all, logits...)
				return nil
			}
			if err := s.Feed(prompt, 32, LastLogits, keep); err != nil {
				t.Fatal(err)
			}
			for i := range 3 {
				logits, err := s.Step(int32(i + 5))
				if err != nil {
					t.Fatal(err)
				}
				all = append(all, logits...)
			}
		})
		return all
	}
	want := run(nil)
	for _, phases := range [][]phase.Phase{{phase.Prefill}, {phase.Decode}, phase.All[:]} {
		dev := sim.New(sim.Config{})
		a, err := Accelerate(t.Context(), r, DeviceOptions{Device: dev, Phases: phases}, 1, 128)
		if err != nil {
			t.Fatal(err)
		}
		if got := run(a); !slices.Equal(got, want) {
			t.Errorf("%v on the device: other logits than on the cores", phases)
		}
		if a.Runs(phase.Prefill) != (phases[0] == phase.Prefill) {
			t.Errorf("%v on the device: Runs(prefill) is %v", phases, a.Runs(phase.Prefill))
		}
		a.Close()
		dev.Close()
	}
}

// TestDeviceDivides checks that prompts that a device and the cores compute together give the same
// tokens, next to decode batches and proactive prompts, and also if the device fails in the middle.
func TestDeviceDivides(t *testing.T) {
	list := deviceRequests(5)
	for i := range list {
		for k := range 70 - 10*i {
			list[i].Prompt = append(list[i].Prompt, int32((11*i+17*k)%90+2))
		}
	}
	options := func(a DeviceOptions) Options {
		o := deviceOptions(t)
		o.Plan.Chunk, o.Accelerator = 96, a
		return o
	}
	want := allTokens(t, open(t, options(DeviceOptions{})), list)
	for _, crash := range []int64{0, 25} {
		t.Run(fmt.Sprintf("crash %d", crash), func(t *testing.T) {
			var submitted atomic.Int64
			dev := sim.New(sim.Config{Fault: func(device.Ticket) sim.Fault {
				if submitted.Add(1) == crash {
					return sim.Crash
				}
				return sim.None
			}})
			t.Cleanup(func() { dev.Close() })
			e := open(t, options(DeviceOptions{Device: dev, Name: "sim", Phases: []phase.Phase{phase.Prefill},
				Divide: true}))
			sameTokens(t, allTokens(t, e, list), want)
			n := e.Stats().Counts
			if n.Divided == 0 || n.LostDevices != min(crash, 1) {
				t.Errorf("%d prompts were divided, %d devices lost, after %d submissions", n.Divided, n.LostDevices,
					submitted.Load())
			}
		})
	}
}

// TestDeviceStatic checks that requests get the same tokens with kernels that are compiled for
// their rows in the background, and that these are used.
func TestDeviceStatic(t *testing.T) {
	list := deviceRequests(5)
	want := allTokens(t, open(t, deviceOptions(t)), list)
	began, goOn := make(chan struct{}, 1000), make(chan struct{})
	dev := sim.New(sim.Config{Compiling: func(k *devgen.Kernel) {
		if k.Static {
			began <- struct{}{}
			<-goOn
		}
	}})
	t.Cleanup(func() { dev.Close() })
	o := deviceOptions(t)
	o.Accelerator = DeviceOptions{Device: dev, Name: "sim", Phases: []phase.Phase{phase.Prefill}, Static: true,
		Divide: true}
	e := open(t, o)
	sameTokens(t, allTokens(t, e, list), want)
	<-began
	if s := e.Stats().Variants; s.Launches != 0 {
		t.Errorf("before a kernel is compiled: %+v", s)
	}
	close(goOn)
	for e.Stats().Variants.Launches == 0 && !t.Failed() {
		for i := range list {
			list[i].Salt[0]++ // no cached prefix
		}
		sameTokens(t, allTokens(t, e, list), want)
	}
}
