//go:build linux && !portablepark

package pool

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

// parking blocks threads in a futex. The calls go through Syscall6, not RawSyscall6: a thread that
// sleeps must give its scheduler slot (P) back, or the rest of the process and the garbage
// collector would wait for it.
type parking struct{}

func (*parking) block(v *atomic.Uint32, old uint32) {
	// EAGAIN (the value moved on) and EINTR are early returns, which callers expect.
	_, _, _ = syscall.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(v)), futexWaitPrivate, uintptr(old), 0, 0, 0)
}

func (*parking) unblock(v *atomic.Uint32) {
	_, _, _ = syscall.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(v)), futexWakePrivate, math.MaxInt32, 0, 0, 0)
}

// nap gives the CPU away for a moment. A signal may end it early.
func nap(d time.Duration) {
	t := unix.NsecToTimespec(int64(d))
	_ = unix.Nanosleep(&t, nil)
}
