package engine

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"sandwich/microkernel/devgen"
	"sandwich/runtime/device"
	"sandwich/runtime/device/sim"
	_ "sandwich/runtime/device/vulkan"
	"sandwich/runtime/phase"
)

// held counts what a lost device must not leave behind.
type held struct{ descriptors, children, goroutines, shared int }

func countHeld(t *testing.T) (h held) {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	return held{descriptors: len(list), children: len(children(t)), goroutines: runtime.NumGoroutine(),
		shared: strings.Count(string(maps), "memfd:")}
}

// children returns the processes that this one started and has not reaped.
func children(t *testing.T) (pids []int) {
	t.Helper()
	files, err := filepath.Glob("/proc/self/task/*/children")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // the thread ended
		}
		for _, field := range strings.Fields(string(text)) {
			var pid int
			if _, err := fmt.Sscan(field, &pid); err != nil {
				t.Fatal(err)
			}
			pids = append(pids, pid)
		}
	}
	return pids
}

// wantHeld checks that nothing is held in addition, after a time in which threads and goroutines
// end.
func wantHeld(t *testing.T, before held) {
	t.Helper()
	var now held
	if !soon(t, func() bool {
		now = countHeld(t)
		return now.descriptors <= before.descriptors && now.children <= before.children &&
			now.goroutines <= before.goroutines && now.shared <= before.shared
	}) {
		t.Errorf("held after the loss: %+v, before: %+v", now, before)
	}
}

// losing runs requests on an engine of options whose device fails after a call of fail, which it
// makes after a number of forwards. It checks their tokens, that one warning and one count report
// the loss, and that nothing is left when the engine is closed.
func losing(t *testing.T, o Options, dev device.Device, phases []phase.Phase, want [][]int32, before held,
	forwards int64, fail func()) {
	t.Helper()
	var warnings atomic.Int64
	on := &o.Accelerator
	on.Device, on.Name, on.Phases, on.Lost = dev, "device", phases, func(err error) {
		if warnings.Add(1); !errors.Is(err, device.ErrLost) && !strings.Contains(err.Error(), "the device") {
			t.Errorf("the warning is %v", err)
		}
	}
	o.share()
	var ended atomic.Int64
	o.Observe = func(Forward) {
		if ended.Add(1) == forwards {
			fail()
		}
	}
	e, err := New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if forwards == 0 {
		fail()
	}
	list := deviceRequests(len(want))
	sameTokens(t, allTokens(t, e, list), want)
	sameTokens(t, allTokens(t, e, list), want) // on the cores
	if n, counted := warnings.Load(), e.Stats().Counts.LostDevices; n != 1 || counted != 1 {
		t.Errorf("the loss was reported %d times and counted %d times", n, counted)
	}
	e.Close()
	if dev.Err() == nil {
		t.Error("the lost device is still open")
	}
	if err := dev.Close(); err != nil {
		t.Errorf("close the device again: %v", err)
	}
	wantHeld(t, before)
}

// TestDeviceFaults checks that requests continue with the same tokens on the cores when a simulated
// device fails at any submission, in memory that they share or not, that one warning and one metric
// report it, and that nothing is left behind.
func TestDeviceFaults(t *testing.T) {
	want := allTokens(t, open(t, deviceOptions(t)), deviceRequests(4))
	for _, c := range []struct {
		name  string
		fault sim.Fault
		at    []int64 // first submission that fails
	}{
		{"crash", sim.Crash, []int64{1, 2, 7, 30}},
		{"NaN", sim.NaN, []int64{1, 2, 7, 30}},
		{"lie", sim.Lie, []int64{1, 2, 7, 30}},
		{"stall", sim.Stall, []int64{20}},
	} {
		for i, at := range c.at {
			phases := [][]phase.Phase{{phase.Prefill}, phase.All[:], {phase.Decode}}[i%3]
			t.Run(fmt.Sprintf("%s/%d/%v", c.name, at, phases), func(t *testing.T) {
				if c.fault == sim.Stall { // the device may also be lost earlier
					defer func(limit time.Duration) { deviceTimeout = limit }(deviceTimeout)
					deviceTimeout = time.Second
				}
				before := countHeld(t)
				var submitted atomic.Int64
				armed := atomic.Bool{}
				sharing := device.Sharing((i + len(c.at)/2) % 3)
				fault := func(device.Ticket) sim.Fault {
					if armed.Load() && submitted.Add(1) >= at {
						return c.fault
					}
					return sim.None
				}
				dev := sim.New(sim.Config{Unified: true, Sharing: sharing, Fault: fault})
				losing(t, deviceOptions(t), dev, phases, want, before, 0, func() { armed.Store(true) })
			})
		}
	}
}

// TestDeviceRefusesLater checks faults after the start of a device that has too little memory or
// refuses a kernel only when requests run.
func TestDeviceRefusesLater(t *testing.T) {
	want := allTokens(t, open(t, deviceOptions(t)), deviceRequests(4))
	t.Run("compile", func(t *testing.T) {
		before := countHeld(t)
		armed := atomic.Bool{}
		dev := sim.New(sim.Config{Refuse: func(*devgen.Kernel) error {
			if armed.Load() {
				return errors.New("no more kernels")
			}
			return nil
		}})
		losing(t, deviceOptions(t), dev, []phase.Phase{phase.Prefill}, want, before, 0, func() { armed.Store(true) })
	})
	t.Run("memory", func(t *testing.T) {
		const enough = 1 << 30
		probe := sim.New(sim.Config{MemoryBytes: enough})
		o := deviceOptions(t)
		o.Accelerator = DeviceOptions{Device: probe, Name: "device", Phases: phase.All[:]}
		e := open(t, o)
		used := enough - probe.Info().FreeBytes
		e.Close()
		if err := probe.Close(); err != nil {
			t.Fatal(err)
		}
		before := countHeld(t)
		dev := sim.New(sim.Config{MemoryBytes: used + 4096})
		losing(t, deviceOptions(t), dev, phase.All[:], want, before, 0, func() {})
	})
}

// TestDriverProcessKilled checks the same with a driver in a child process that is killed while
// requests run.
func TestDriverProcessKilled(t *testing.T) {
	id := ""
	for _, d := range device.List(t.Context()) {
		if d.Err == nil {
			id = d.ID
		}
	}
	if id == "" {
		t.Skip("this host has no device; install a Vulkan driver such as mesa-vulkan-drivers")
	}
	t.Run("dense", func(t *testing.T) { testKilled(t, id, deviceOptions(t), phase.Prefill) })
	t.Run("experts", func(t *testing.T) { testKilled(t, id, expertsOptions(t, "qwen3moe"), phase.All[:]...) })
}

func testKilled(t *testing.T, id string, o Options, phases ...phase.Phase) {
	alone := o
	alone.Accelerator = DeviceOptions{}
	want := allTokens(t, open(t, alone), deviceRequests(4))
	before, earlier := countHeld(t), children(t)
	dev, err := device.Open(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	var pids []int
	started := func() bool { // the list of a thread that ends at this moment is not read
		pids = slices.DeleteFunc(children(t), func(pid int) bool { return slices.Contains(earlier, pid) })
		return len(pids) == 1
	}
	if !soon(t, started) {
		t.Fatalf("the driver has processes %v, want one", pids)
	}
	if dev.Info().Exact != device.AllExact {
		t.Skipf("%s is not exact", id)
	}
	losing(t, o, dev, phases, want, before, 3, func() {
		if err := syscall.Kill(pids[0], syscall.SIGKILL); err != nil {
			t.Error(err)
		}
	})
}
