//go:build !race

package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"testing"

	"golang.org/x/sys/unix"
)

// withoutAffinityName is the name under which the test binary is the program in a sandbox that
// forbids to bind threads to CPUs.
const withoutAffinityName = "sandwich-without-affinity"

func init() { programs[withoutAffinityName] = withoutAffinity }

func withoutAffinity() {
	err := installFilter([]unix.SockFilter{
		{Code: bpfLoad, K: atNumber},
		{Code: bpfIfEqual, K: unix.SYS_SCHED_SETAFFINITY, Jf: 1},
		{Code: bpfReturn, K: bpfRefuse},
		{Code: bpfReturn, K: bpfAllow},
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, "seccomp:", err)
		os.Exit(noSeccomp)
	}
	main()
}

// TestWithoutAffinity checks that a sandbox that forbids to bind threads gets an answer and one
// warning.
func TestWithoutAffinity(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var stderr bytes.Buffer
	c := exec.Command(exe)
	c.Args = []string{withoutAffinityName, "generate", "--tokens", "1,22,333", "-n", "1", "--threads", "1",
		"--compute", "f32", "--attention", "f32", "--ignore-eos"}
	c.Stderr = &stderr
	c.Env = append(os.Environ(), "HOME="+t.TempDir(), "XDG_DATA_HOME="+t.TempDir())
	_, err = c.Output()
	if failed := (*exec.ExitError)(nil); errors.As(err, &failed) && failed.ExitCode() == noSeccomp {
		t.Skipf("seccomp filters are forbidden or not supported: %s", &stderr)
	}
	if n := bytes.Count(stderr.Bytes(), []byte("warning: workers are not pinned")); err != nil || n != 1 {
		t.Errorf("%v, %d warnings, want 1: %s", err, n, &stderr)
	}
}
