package sysfs

import (
	"fmt"
	"os"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"

	"sandwich/topotree"
)

// ReadLive reads the machine that this process runs on. The affinity of the process determines the
// allowed PUs. If sysfs is missing or inconsistent, the result is a flat tree of these PUs, and
// Warning says so.
func ReadLive() (*topotree.Machine, error) {
	mask, err := affinity(os.Getpid())
	if err != nil {
		return nil, err
	}
	m, err := readLive(os.DirFS("/"), mask)
	if err != nil {
		return nil, err
	}
	if m.Arch == "" {
		m.Arch = uname()
	}
	if editLive != nil {
		return editLive(m)
	}
	return m, nil
}

// editLive changes the machine that ReadLive returns. It is nil except in builds for tests; see
// live_l3.go.
var editLive func(*topotree.Machine) (*topotree.Machine, error)

// affinity returns the PUs on which the main thread of a process may run. The mask has MaxPUs bits,
// since the kernel rejects shorter masks on larger machines.
func affinity(pid int) (topotree.CPUSet, error) {
	words := make([]uint64, topotree.MaxPUs/64)
	n, _, errno := unix.Syscall(unix.SYS_SCHED_GETAFFINITY, uintptr(pid), uintptr(len(words)*8),
		uintptr(unsafe.Pointer(&words[0])))
	if errno != 0 {
		return topotree.CPUSet{}, fmt.Errorf("cannot read the CPU affinity of this process: %w; "+
			"permit the system call sched_getaffinity", errno)
	}
	return topotree.CPUSetFromWords(slices.Clone(words[:n/8])), nil
}

func uname() string {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return ""
	}
	return unix.ByteSliceToString(u.Machine[:])
}
