//go:build !race

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"testing"

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
	const shmExec = 0o100000
	err := installFilter([]unix.SockFilter{
		{Code: bpfLoad, K: atNumber},
		{Code: bpfIfEqual, K: unix.SYS_MMAP, Jt: 4},
		{Code: bpfIfEqual, K: unix.SYS_MPROTECT, Jt: 6},
		{Code: bpfIfEqual, K: unix.SYS_PKEY_MPROTECT, Jt: 5},
		{Code: bpfIfEqual, K: unix.SYS_SHMAT, Jt: 6},
		{Code: bpfReturn, K: bpfAllow},
		{Code: bpfLoad, K: atProt}, // mmap
		{Code: bpfAnd, K: unix.PROT_WRITE | unix.PROT_EXEC},
		{Code: bpfIfEqual, K: unix.PROT_WRITE | unix.PROT_EXEC, Jt: 4, Jf: 5},
		{Code: bpfLoad, K: atProt}, // mprotect
		{Code: bpfIfSet, K: unix.PROT_EXEC, Jt: 2, Jf: 3},
		{Code: bpfLoad, K: atProt}, // shmat
		{Code: bpfIfSet, K: shmExec, Jf: 1},
		{Code: bpfReturn, K: bpfRefuse},
		{Code: bpfReturn, K: bpfAllow},
	})
	if err != nil {
		return fmt.Errorf("seccomp: %w", err)
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
