package slurm

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// inNamespaces is set in the environment of tests that run in namespaces of their own.
const inNamespaces = "SLURM_TEST_NAMESPACES"

// TestMain runs the tests in namespaces of their own where possible: their addresses and network
// interfaces do not exist outside, and all their processes end with them.
func TestMain(m *testing.M) {
	if os.Getenv(inNamespaces) != "" {
		// Slurm looks up addresses only on hosts that have one outside of 127.0.0.0/8.
		for _, args := range []string{"link set lo up", "addr add 10.77.255.1/32 dev lo"} {
			if out, err := exec.Command("ip", strings.Fields(args)...).CombinedOutput(); err != nil {
				panic(string(out))
			}
		}
		os.Exit(m.Run())
	}
	if !namespaces() {
		os.Exit(m.Run())
	}
	// The shell is the first process of its namespace and reaps orphans of jobs. slurmstepd waits for
	// all processes of a job, zombies included.
	cmd := exec.Command("unshare", append([]string{"--net", "--mount", "--pid", "--fork", "--mount-proc",
		"--kill-child", "sh", "-c", `"$@"; exit $?`, "sh"}, os.Args...)...)
	cmd.Env = append(os.Environ(), inNamespaces+"=1")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	err := cmd.Run()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		panic(err)
	}
	os.Exit(cmd.ProcessState.ExitCode())
}

// namespaces reports whether this process may make namespaces and set up a network in them.
func namespaces() bool {
	return exec.Command("unshare", "--net", "--mount", "--pid", "--fork", "--mount-proc", "ip", "link", "set", "lo",
		"up").Run() == nil
}
