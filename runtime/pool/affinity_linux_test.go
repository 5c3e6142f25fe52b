package pool

import (
	"slices"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"sandwich/runtime/pool/internal/sys"
)

func TestWorkersStayOnTheirPU(t *testing.T) {
	p := open(t, 4, Options{Pin: true})
	if !p.isPinned() || p.Note() != "" {
		t.Fatalf("pinned %v, note %q", p.isPinned(), p.Note())
	}
	pus := p.PUs()
	p.Run(func(w *Worker) {
		got, err := sys.AllowedPUs()
		if err != nil || !slices.Equal(got, []int{pus[w.ID()]}) || w.PU() != pus[w.ID()] {
			t.Errorf("worker %d may run on %v (%v), want PU %d", w.ID(), got, err, pus[w.ID()])
		}
		var cpu uint32
		_, _, errno := unix.RawSyscall(unix.SYS_GETCPU, uintptr(unsafe.Pointer(&cpu)), 0, 0)
		if errno == 0 && int(cpu) != w.PU() {
			t.Errorf("worker %d runs on CPU %d, bound to %d", w.ID(), cpu, w.PU())
		}
	})
}

func TestForbiddenPUIsNamed(t *testing.T) {
	allowed, err := sys.AllowedPUs()
	if err != nil {
		t.Fatal(err)
	}
	_, err = New([]int{allowed[0], 99999}, Options{Pin: true})
	if err == nil || !strings.Contains(err.Error(), "PU 99999") {
		t.Errorf("got %v", err)
	}
	if err := sys.Pin(0, 99999); err == nil {
		t.Error("binding to a CPU that does not exist succeeded")
	}
}

// TestPlacesFollowTheSystem checks that a worker whose PU the process loses is reported, keeps
// working, and is bound again when the PU becomes available.
func TestPlacesFollowTheSystem(t *testing.T) {
	p := open(t, 2, Options{Pin: true})
	pus := p.PUs()
	if pus[0] == pus[1] {
		t.Skip("needs two PUs; allow this process another one")
	}
	main := unix.Getpid()
	var before unix.CPUSet
	if err := unix.SchedGetaffinity(main, &before); err != nil {
		t.Fatal(err)
	}
	defer unix.SchedSetaffinity(main, &before)
	check := func(when string, lost, allowed []int) {
		t.Helper()
		got, err := p.Places()
		if err != nil || !slices.Equal(got.Lost, lost) || allowed != nil && !slices.Equal(got.Allowed, allowed) {
			t.Errorf("%s: %+v, %v; want lost workers %v", when, got, err, lost)
		}
	}
	check("at first", nil, nil)
	// What the kernel does with every thread when a cpuset shrinks.
	var one unix.CPUSet
	one.Set(pus[0])
	for _, thread := range []int{main, int(p.workers[1].thread.Load())} {
		if err := unix.SchedSetaffinity(thread, &one); err != nil {
			t.Fatal(err)
		}
	}
	check("with one PU left", []int{1}, []int{pus[0]})
	ran := make([]bool, 2)
	p.Run(func(w *Worker) { ran[w.ID()] = true; w.Barrier() })
	if !ran[0] || !ran[1] {
		t.Errorf("workers that ran: %v", ran)
	}
	if err := unix.SchedSetaffinity(main, &before); err != nil {
		t.Fatal(err)
	}
	check("when it is back", nil, nil)
	p.Run(func(w *Worker) {
		if got, err := sys.AllowedPUs(); err != nil || !slices.Equal(got, []int{w.PU()}) {
			t.Errorf("worker %d may run on %v (%v), want its PU %d again", w.ID(), got, err, w.PU())
		}
	})
}
