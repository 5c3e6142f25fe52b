//go:build !race

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Names under which the test binary is the program in the two ways in which systemd applies
// MemoryDenyWriteExecute=yes: by prctl, and before Linux 6.3 by a seccomp filter.
const (
	underMDWE   = "sandwich-mdwe"
	underFilter = "sandwich-mdwe-filter"
)

func init() {
	programs[underMDWE] = func() { runUnder(denyByPrctl) }
	programs[underFilter] = func() { runUnder(denyByFilter) }
}

// runUnder runs the program after deny has applied to all threads of the process.
func runUnder(deny func() error) {
	if err := deny(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(noSeccomp)
	}
	page, err := unix.Mmap(-1, 0, os.Getpagesize(), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil || unix.Mprotect(page, unix.PROT_READ|unix.PROT_EXEC) == nil {
		fmt.Fprintln(os.Stderr, "written memory became executable, or there is no memory:", err)
		os.Exit(1)
	}
	main()
}

func denyByPrctl() error {
	const setMDWE, refuseExecGain = 65, 1
	if err := unix.Prctl(setMDWE, refuseExecGain, 0, 0, 0); err != nil {
		return fmt.Errorf("PR_SET_MDWE needs Linux 6.3: %w", err)
	}
	return nil
}

// denyByFilter refuses what the filter of systemd refuses (seccomp_memory_deny_write_execute in
// src/shared/seccomp-util.c): mmap with PROT_WRITE and PROT_EXEC, mprotect and pkey_mprotect with
// PROT_EXEC, and shmat with SHM_EXEC.
func denyByFilter() error {
	const (
		filterMode, allThreads = 1, 1
		atNumber, atProt       = 0, 16 + 2*8 // of struct seccomp_data
		allow, refuse          = 0x7fff0000, 0x00050000 | uint32(unix.EPERM)
		load                   = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
		and                    = unix.BPF_ALU | unix.BPF_AND | unix.BPF_K
		ifEqual, ifSet, answer = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, unix.BPF_JMP | unix.BPF_JSET |
			unix.BPF_K, unix.BPF_RET | unix.BPF_K
		shmExec = 0o100000
	)
	code := []unix.SockFilter{
		{Code: load, K: atNumber},
		{Code: ifEqual, K: unix.SYS_MMAP, Jt: 4},
		{Code: ifEqual, K: unix.SYS_MPROTECT, Jt: 6},
		{Code: ifEqual, K: unix.SYS_PKEY_MPROTECT, Jt: 5},
		{Code: ifEqual, K: unix.SYS_SHMAT, Jt: 6},
		{Code: answer, K: allow},
		{Code: load, K: atProt}, // mmap
		{Code: and, K: unix.PROT_WRITE | unix.PROT_EXEC},
		{Code: ifEqual, K: unix.PROT_WRITE | unix.PROT_EXEC, Jt: 4, Jf: 5},
		{Code: load, K: atProt}, // mprotect
		{Code: ifSet, K: unix.PROT_EXEC, Jt: 2, Jf: 3},
		{Code: load, K: atProt}, // shmat
		{Code: ifSet, K: shmExec, Jf: 1},
		{Code: answer, K: refuse},
		{Code: answer, K: allow},
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	filter := unix.SockFprog{Len: uint16(len(code)), Filter: &code[0]}
	if _, _, errno := unix.Syscall(unix.SYS_SECCOMP, filterMode, allThreads,
		uintptr(unsafe.Pointer(&filter))); errno != 0 {
		return fmt.Errorf("seccomp: %w", errno)
	}
	return nil
}

// TestMemoryDenyWriteExecute checks that kernels are generated and give the same tokens where
// memory that was writable may not become executable.
func TestMemoryDenyWriteExecute(t *testing.T) {
	answer := func(t *testing.T, program string) string {
		t.Helper()
		out, warnings := outputOf(t, program, "generate", "--tokens", "1,22,333", "-n", "6", "--ignore-eos",
			"--threads", "1", "--format", "json")
		if warnings != 0 {
			t.Error("the kernels were not generated")
		}
		var answer struct {
			Tokens []int32 `json:"tokens"`
		}
		if err := json.Unmarshal(out, &answer); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return fmt.Sprint(answer.Tokens)
	}
	want := answer(t, "sandwich")
	for _, program := range []string{underMDWE, underFilter} {
		t.Run(program, func(t *testing.T) {
			if got := answer(t, program); got != want {
				t.Errorf("tokens %s, want %s", got, want)
			}
		})
	}
}
