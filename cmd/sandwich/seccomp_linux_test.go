//go:build !race

package main

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// Instructions, results and offsets of seccomp filters.
const (
	bpfLoad             = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
	bpfAnd              = unix.BPF_ALU | unix.BPF_AND | unix.BPF_K
	bpfIfEqual          = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
	bpfIfSet            = unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K
	bpfReturn           = unix.BPF_RET | unix.BPF_K
	bpfAllow, bpfRefuse = 0x7fff0000, 0x00050000 | uint32(unix.EPERM)

	// Of struct seccomp_data: the system call, and the low word of its third argument.
	atNumber, atProt = 0, 16 + 2*8
)

// installFilter applies a seccomp filter to all threads of this process.
func installFilter(code []unix.SockFilter) error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	const filterMode, allThreads = 1, 1
	filter := unix.SockFprog{Len: uint16(len(code)), Filter: &code[0]}
	if _, _, errno := unix.Syscall(unix.SYS_SECCOMP, filterMode, allThreads,
		uintptr(unsafe.Pointer(&filter))); errno != 0 {
		return errno
	}
	return nil
}
