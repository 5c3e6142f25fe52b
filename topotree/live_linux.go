package topotree

import (
	"encoding/binary"
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// ReadLive reads the machine this process runs on and narrows Allowed by the process's affinity
// mask.
func ReadLive() (*Machine, error) {
	m, err := ReadSysfs(os.DirFS("/"))
	if err != nil {
		return nil, err
	}
	mask, err := affinity(os.Getpid())
	if err != nil {
		return nil, err
	}
	m.Source = "live linux"
	if m.Arch == "" {
		m.Arch = uname()
	}
	m.Allowed = m.Allowed.Intersect(mask)
	if m.Allowed.IsEmpty() {
		return nil, fmt.Errorf("no online CPU is allowed to this process: its affinity is %s", mask)
	}
	return m, nil
}

// affinity reads the mask of a process as it was started. x/sys has a fixed mask of 1024 CPUs,
// which the kernel refuses on larger machines; this one holds MaxPUs.
func affinity(pid int) (CPUSet, error) {
	words := make([]uint64, MaxPUs/64)
	n, _, errno := unix.Syscall(unix.SYS_SCHED_GETAFFINITY, uintptr(pid), uintptr(len(words)*8),
		uintptr(unsafe.Pointer(&words[0])))
	if errno != 0 {
		return CPUSet{}, fmt.Errorf("cannot read the CPU affinity of this process: %w", errno)
	}
	used := unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), len(words)*8)[:n]
	mask := make([]uint64, len(words))
	for i := 0; i+8 <= len(used); i += 8 {
		mask[i/8] = binary.NativeEndian.Uint64(used[i:])
	}
	return trimmed(mask).compact(), nil
}

func uname() string {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return ""
	}
	return unix.ByteSliceToString(u.Machine[:])
}
