package hostcall

import (
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestFaults checks that each fault of the child loses the process with its reason, and that later
// calls fail at once.
func TestFaults(t *testing.T) {
	for name, c := range map[string]struct {
		fault func(*testing.T, *Process)
		want  string
	}{
		"crash": {func(t *testing.T, p *Process) {
			_, _ = call(p.Main(), symbol(t, p, "abort"))
		}, "signal: aborted"},
		"wrong address": {func(t *testing.T, p *Process) {
			_, _ = call(p.Main(), symbol(t, p, "strlen"), 8)
		}, "signal: segmentation fault"},
		"exit": {func(t *testing.T, p *Process) {
			_, _ = call(p.Main(), symbol(t, p, "exit"), 3)
		}, "exit status 3"},
		"hang": {func(t *testing.T, p *Process) {
			pause := symbol(t, p, "pause")
			p.limit = 300 * time.Millisecond // a call that returns may take longer on a busy machine
			_, _ = call(p.Main(), pause)
		}, "took longer than 300ms"},
		"killed": {func(_ *testing.T, p *Process) {
			_ = syscall.Kill(p.PID(), syscall.SIGKILL)
			<-p.Lost()
		}, "signal: killed"},
		"stopped": {func(t *testing.T, p *Process) {
			abs := symbol(t, p, "labs")
			_ = syscall.Kill(p.PID(), syscall.SIGSTOP)
			p.limit = 300 * time.Millisecond
			_, _ = call(p.Main(), abs, 1)
		}, "took longer than 300ms"},
		"overwritten mailbox": {overwriteMailbox, "invalid reply"},
	} {
		t.Run(name, func(t *testing.T) {
			p := startTest(t, Options{})
			abs := symbol(t, p, "labs")
			c.fault(t, p)
			select {
			case <-p.Lost():
			case <-time.After(2 * time.Minute):
				t.Fatal("the process is not lost")
			}
			if err := p.Err(); !errors.Is(err, ErrLost) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("reason: %v, want %q", err, c.want)
			}
			if _, err := call(p.Main(), abs, 1); !errors.Is(err, ErrLost) {
				t.Errorf("a later call: %v", err)
			}
		})
	}
}

// overwriteMailbox lets one thread of the child overwrite the mailbox of another one that is in a
// call.
func overwriteMailbox(t *testing.T, p *Process) {
	other, err := p.NewThread()
	if err != nil {
		t.Fatal(err)
	}
	pause, memset := symbol(t, p, "pause"), symbol(t, p, "memset")
	ended := make(chan error)
	go func() {
		_, err := call(other, pause)
		ended <- err
	}()
	for other.word(boxRequest).Load() < 2 {
		time.Sleep(time.Millisecond) // until the request is made
	}
	_, _ = call(p.Main(), memset, uint64(uintptr(other.box))+boxDone, 0x77, 4)
	if err := <-ended; err == nil {
		t.Error("the overwritten reply was accepted")
	}
}

// TestNothingLeaks starts and loses processes in several ways and checks that no descriptor and no
// child remains.
func TestNothingLeaks(t *testing.T) {
	startTest(t, Options{}) // opens what stays open, such as the runtime's poller
	before := descriptors(t)
	for i := range 6 {
		p, err := Start(Options{})
		if err != nil {
			t.Fatal(err)
		}
		pid := p.PID()
		if _, err := p.Share(1 << 20); err != nil {
			t.Fatal(err)
		}
		switch i % 3 {
		case 1:
			_, _ = call(p.Main(), symbol(t, p, "abort"))
		case 2:
			pause := symbol(t, p, "pause")
			p.limit = 200 * time.Millisecond
			_, _ = call(p.Main(), pause)
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
		if err := p.Close(); err != nil {
			t.Errorf("second Close: %v", err)
		}
		if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
			t.Errorf("process %d exists after Close: %v", pid, err)
		}
	}
	if after := descriptors(t); after > before {
		t.Errorf("%d descriptors are open, %d before", after, before)
	}
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	// The process of this test's first line has one mapping.
	if n := strings.Count(string(maps), "sandwich-shared"); n > 1 {
		t.Errorf("%d shared mappings remain", n)
	}
}

func descriptors(t *testing.T) int {
	t.Helper()
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(fds)
}
