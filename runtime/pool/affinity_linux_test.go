package pool

import (
	"slices"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

func TestWorkersStayOnTheirPU(t *testing.T) {
	p := open(t, 4, Options{Pin: true})
	if !p.Pinned() || p.Note() != "" {
		t.Fatalf("pinned %v, note %q", p.Pinned(), p.Note())
	}
	pus := p.PUs()
	p.Run(func(w *Worker) {
		got, err := allowedPUs()
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
	_, err := New([]int{0, 99999}, Options{Pin: true})
	if err == nil || !strings.Contains(err.Error(), "PU 99999") {
		t.Errorf("got %v", err)
	}
	if err := pinThread(99999); err == nil {
		t.Error("binding to a CPU that does not exist succeeded")
	}
}

func TestMaskPUs(t *testing.T) {
	if got := maskPUs([]uint64{0b101, 1 << 63}); !slices.Equal(got, []int{0, 2, 127}) {
		t.Errorf("got %v", got)
	}
}
