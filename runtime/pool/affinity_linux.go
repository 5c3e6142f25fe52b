package pool

import (
	"errors"
	"fmt"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

const affinitySupported = true

// allowedPUs returns the PUs the calling thread may run on, ascending.
func allowedPUs() ([]int, error) { return threadPUs(0) }

// processPUs returns the PUs of the main thread, which stand for the process's: workers bind other
// threads.
func processPUs() ([]int, error) { return threadPUs(unix.Getpid()) }

// threadPUs returns the PUs a thread may run on, ascending; thread 0 is the calling one. The mask
// grows until the kernel accepts it, so machines beyond 1024 CPUs work.
func threadPUs(thread int) ([]int, error) {
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

// pinThread binds a thread to one PU and reads the binding back: some sandboxes accept the call and
// ignore it. Thread 0 is the calling one.
func pinThread(thread, pu int) error {
	mask := make([]uint64, pu/64+1)
	mask[pu/64] = 1 << (pu % 64)
	if _, _, errno := unix.RawSyscall(unix.SYS_SCHED_SETAFFINITY, uintptr(thread), uintptr(len(mask)*8),
		uintptr(unsafe.Pointer(&mask[0]))); errno != 0 {
		return fmt.Errorf("binding a worker to PU %d: %w", pu, errno)
	}
	got, err := threadPUs(thread)
	if err != nil {
		return fmt.Errorf("reading back the binding to PU %d: %w", pu, err)
	}
	if !slices.Equal(got, []int{pu}) {
		return fmt.Errorf("a worker bound to PU %d may run on %s: the system ignores affinity; start without "+
			"pinning", pu, formatSet(got))
	}
	return nil
}

// threadID names the calling thread for threadPUs and pinThread.
func threadID() int { return unix.Gettid() }

// involuntarySwitches is how often the kernel took the CPU from the calling thread for another one.
func involuntarySwitches() int64 {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_THREAD, &u); err != nil {
		return 0
	}
	return u.Nivcsw
}

// onMainThread says whether the caller runs on the thread the process was started on.
func onMainThread() bool { return unix.Gettid() == unix.Getpid() }
