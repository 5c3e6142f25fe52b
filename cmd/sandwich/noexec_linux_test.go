//go:build !race

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"testing"

	"golang.org/x/sys/unix"
)

// withoutExecName is the name under which the test binary is that program, and noSeccomp its exit
// code where there is no such filter.
const (
	withoutExecName = "sandwich-without-exec"
	noSeccomp       = 99
)

func init() { programs[withoutExecName] = withoutExec }

// withoutExec runs the program as on a machine that forbids executable memory: a seccomp filter
// rejects PROT_EXEC for mmap and mprotect on every thread.
func withoutExec() {
	if err := forbidExec(); err != nil {
		fmt.Fprintln(os.Stderr, "seccomp:", err)
		os.Exit(noSeccomp)
	}
	main()
}

func forbidExec() error {
	return installFilter([]unix.SockFilter{
		{Code: bpfLoad, K: atNumber},
		{Code: bpfIfEqual, K: unix.SYS_MMAP, Jt: 2},
		{Code: bpfIfEqual, K: unix.SYS_MPROTECT, Jt: 1},
		{Code: bpfReturn, K: bpfAllow},
		{Code: bpfLoad, K: atProt},
		{Code: bpfIfSet, K: unix.PROT_EXEC, Jf: 1},
		{Code: bpfReturn, K: bpfRefuse},
		{Code: bpfReturn, K: bpfAllow},
	})
}

// TestWithoutExec checks that without executable memory plain Go computes the same tokens, that one
// warning is printed, and that measurements of this machine use plain Go.
func TestWithoutExec(t *testing.T) {
	prompt := []string{"generate", "--tokens", "1,22,333", "-n", "6", "--ignore-eos", "--threads", "1",
		"--format", "json"}
	var tokens [2]string
	for i, program := range []string{"sandwich", withoutExecName} {
		out, warnings := outputOf(t, program, prompt...)
		if warnings != i {
			t.Errorf("%s: %d warnings, want %d", program, warnings, i)
		}
		var answer struct {
			Tokens []int32 `json:"tokens"`
		}
		if err := json.Unmarshal(out, &answer); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		tokens[i] = fmt.Sprint(answer.Tokens)
	}
	if tokens[0] != tokens[1] {
		t.Errorf("tokens %s, and %s without executable memory", tokens[0], tokens[1])
	}
	out, _ := outputOf(t, withoutExecName, "probe", "--measure", "quick")
	if !bytes.Contains(out, []byte("forbids executable memory")) || !bytes.Contains(out, []byte("go f32")) ||
		bytes.Contains(out, []byte("avx2 f32")) {
		t.Errorf("a probe without executable memory does not say so, or did not measure plain Go alone: %s", out)
	}
	outputOf(t, withoutExecName, "bench", "llm", "-p", "4", "-n", "2", "-r", "1", "--threads", "1")
}

// outputOf runs the program under one of the names that TestMain knows, and counts the warnings
// about executable memory.
func outputOf(t *testing.T, program string, args ...string) (out []byte, warnings int) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var stderr bytes.Buffer
	c := exec.Command(exe)
	c.Args, c.Stderr = append([]string{program}, args...), &stderr
	c.Env = append(os.Environ(), "HOME="+t.TempDir(), "XDG_DATA_HOME="+t.TempDir())
	out, err = c.Output()
	if failed := (*exec.ExitError)(nil); errors.As(err, &failed) && failed.ExitCode() == noSeccomp {
		t.Skipf("seccomp filters are forbidden or not supported: %s", &stderr)
	}
	if err != nil {
		t.Fatalf("%s %v: %v: %s", program, args, err, &stderr)
	}
	return out, bytes.Count(stderr.Bytes(), []byte("no executable memory"))
}
