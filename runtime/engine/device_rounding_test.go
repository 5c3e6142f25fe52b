package engine

import (
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"sandwich/microkernel/devgen"
	"sandwich/runtime/api"
	"sandwich/runtime/device"
	"sandwich/runtime/device/sim"
	"sandwich/runtime/offload"
	"sandwich/runtime/phase"
)

// TestDeviceRounding checks that an inexact device is used only if that is permitted, and that its
// loss ends the requests that have started, and only those, with an error that names it.
func TestDeviceRounding(t *testing.T) {
	round := func(k *devgen.Kernel, buffers [][]byte) {
		for i, b := range k.Bindings {
			if b.Name == "c" { // the results of products
				for at := 0; at < len(buffers[i]); at += 4 {
					buffers[i][at] ^= 1
				}
			}
		}
	}
	// After the prompt of a request, the device holds a submission until another request waits, and
	// crashes then.
	var holds atomic.Bool
	waits := make(chan struct{})
	dev := sim.New(sim.Config{Name: "inexact", After: round, Fault: func(device.Ticket) sim.Fault {
		if !holds.Load() {
			return sim.None
		}
		<-waits
		return sim.Crash
	}})
	defer dev.Close()
	o := deviceOptions(t)
	o.Parallel = 1 // other requests wait
	o.Accelerator = DeviceOptions{Device: dev, Name: "sim:0", Phases: phase.All[:]}
	if _, err := New(t.Context(), o); !errors.Is(err, offload.ErrUnsupported) {
		t.Fatalf("an inexact device: %v", err)
	}
	var warning atomic.Value
	o.Accelerator.Rounding = true
	o.Accelerator.Lost = func(err error) { warning.Store(err.Error()) }
	o.Observe = func(f Forward) {
		if f.Prefill && !f.Halted {
			holds.Store(true)
		}
	}
	e := open(t, o)
	list := deviceRequests(3)
	list[1].IgnoreEOS = true
	list[2].Class = list[1].Class // it does not preempt the other
	list[2].Queued = func(api.Queue) { close(waits) }
	first, second := make(chan error, 1), make(chan error, 1)
	started := make(chan struct{})
	start := sync.OnceFunc(func() { close(started) })
	go func() {
		_, err := e.Generate(t.Context(), list[1], func(api.Token) error {
			start()
			return nil
		})
		first <- err
	}()
	<-started
	go func() {
		_, err := e.Generate(t.Context(), list[2], func(api.Token) error { return nil })
		second <- err
	}()
	var lost *api.LostDeviceError
	if err := <-first; !errors.As(err, &lost) || lost.Device != "sim:0" || !errors.Is(err, device.ErrLost) {
		t.Errorf("the request that had started: %v", err)
	}
	if err := <-second; err != nil {
		t.Errorf("the request that had not started: %v", err)
	}
	if text, _ := warning.Load().(string); !strings.Contains(text, "requests that have started fail") {
		t.Errorf("warning %q", text)
	}
}
