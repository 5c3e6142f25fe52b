//go:build linux && !portablepark

package sys

import (
	"math"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	futexWaitPrivate = 0 | 128 // FUTEX_WAIT | FUTEX_PRIVATE_FLAG
	futexWakePrivate = 1 | 128 // FUTEX_WAKE | FUTEX_PRIVATE_FLAG
)

// parking blocks threads in a futex. The calls use Syscall6, not RawSyscall6: a thread that sleeps
// must release its P, or the rest of the process and the garbage collector would wait for it.
type parking struct{}

func (*parking) block(v *atomic.Uint32, old uint32) {
	// EAGAIN (the value has changed) and EINTR are early returns, which callers expect.
	_, _, _ = syscall.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(v)), futexWaitPrivate, uintptr(old), 0, 0, 0)
}

func (*parking) unblock(v *atomic.Uint32) {
	_, _, _ = syscall.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(v)), futexWakePrivate, math.MaxInt32, 0, 0, 0)
}

// Nap sleeps for a short time. A signal may end it early.
func Nap(d time.Duration) {
	t := unix.NsecToTimespec(int64(d))
	_ = unix.Nanosleep(&t, nil)
}
