package thread

import (
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// TestLow checks that only the thread of the function has another priority, and that a function
// that ends its goroutine does not block the caller.
func TestLow(t *testing.T) {
	nice := func() int {
		n, err := unix.Getpriority(unix.PRIO_PROCESS, 0)
		if err != nil {
			t.Fatal(err)
		}
		return 20 - n // the system call adds 20 and changes the sign
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before, inside, thread := nice(), 0, 0
	Low(func() { inside, thread = nice(), unix.Gettid() })
	if inside < before || inside < 10 {
		t.Errorf("the priority is %d, and before %d", inside, before)
	}
	if after := nice(); after != before || thread == unix.Gettid() || thread == unix.Getpid() {
		t.Errorf("the priority of the caller is %d, and before %d; threads %d and %d", after, before, thread,
			unix.Gettid())
	}
	Low(runtime.Goexit)
}
