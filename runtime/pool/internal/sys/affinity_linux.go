package sys

import (
	"errors"
	"fmt"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// AffinitySupported reports whether the system can bind threads to PUs.
const AffinitySupported = true

// AllowedPUs returns the PUs on which the calling thread may run, ascending.
func AllowedPUs() ([]int, error) { return ThreadPUs(0) }

// ProcessPUs returns the PUs of the main thread, which are those of the process: workers bind other
// threads.
func ProcessPUs() ([]int, error) { return ThreadPUs(unix.Getpid()) }

// ThreadPUs returns the PUs on which a thread may run, ascending. Thread 0 is the caller. The mask
// grows until the kernel accepts it, for machines with more than 1024 CPUs.
func ThreadPUs(thread int) ([]int, error) {
	for words := 16; words <= 1<<14; words *= 2 {
		mask := make([]uint64, words)
		n, _, errno := unix.RawSyscall(unix.SYS_SCHED_GETAFFINITY, uintptr(thread), uintptr(words*8),
			uintptr(unsafe.Pointer(&mask[0])))
		if errno == unix.EINVAL {
			continue
		}
		if errno != 0 {
			return nil, errno
		}
		return maskPUs(mask[:(n+7)/8]), nil
	}
	return nil, errors.New("the kernel's CPU mask is larger than 1,048,576 CPUs")
}

func maskPUs(mask []uint64) []int {
	var pus []int
	for i, word := range mask {
		for b := range 64 {
			if word>>b&1 != 0 {
				pus = append(pus, i*64+b)
			}
		}
	}
	return pus
}

// Pin binds a thread to one PU and reads the binding back, because some sandboxes accept the call
// and ignore it. Thread 0 is the caller. It returns an error that wraps ErrNoAffinity if the system
// binds no threads.
func Pin(thread, pu int) error {
	mask := make([]uint64, pu/64+1)
	mask[pu/64] = 1 << (pu % 64)
	if _, _, errno := unix.RawSyscall(unix.SYS_SCHED_SETAFFINITY, uintptr(thread), uintptr(len(mask)*8),
		uintptr(unsafe.Pointer(&mask[0]))); errno != 0 {
		if errno == unix.EPERM || errno == unix.ENOSYS {
			return fmt.Errorf("%w (sched_setaffinity: %w)", ErrNoAffinity, errno)
		}
		return fmt.Errorf("binding a worker to PU %d: %w", pu, errno)
	}
	got, err := ThreadPUs(thread)
	if err != nil {
		return fmt.Errorf("reading back the binding to PU %d: %w", pu, err)
	}
	if !slices.Equal(got, []int{pu}) {
		return fmt.Errorf("%w (a thread bound to PU %d may run on %s)", ErrNoAffinity, pu, FormatSet(got))
	}
	return nil
}

// ThreadID returns the number of the calling thread for ThreadPUs and Pin.
func ThreadID() int { return unix.Gettid() }

// InvoluntarySwitches returns how often the kernel gave the CPU of the calling thread to another
// one.
func InvoluntarySwitches() int64 {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_THREAD, &u); err != nil {
		return 0
	}
	return u.Nivcsw
}

// onMainThread reports whether the caller runs on the thread on which the process started.
func onMainThread() bool { return unix.Gettid() == unix.Getpid() }
