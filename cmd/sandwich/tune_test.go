package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"sandwich/cmd/sandwich/internal/cli/exit"
	"sandwich/cmd/sandwich/internal/cli/root"
)

// TestTuneIsInterrupted checks that an interrupted tune keeps its journal, leaves neither a plan
// nor partial files, and continues with --resume.
func TestTuneIsInterrupted(t *testing.T) {
	host := unmeasuredHost(t)
	for name, signal := range map[string]syscall.Signal{"Ctrl-C": syscall.SIGINT, "kill -9": syscall.SIGKILL} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // a search takes its budget of time
			dir := t.TempDir()
			cmd, args, stderr := interruptedTune(t, dir, host, signal)
			if signal == syscall.SIGINT && (cmd.ProcessState.ExitCode() != exit.Failed ||
				!strings.Contains(stderr.String(), "with --resume to continue")) {
				t.Errorf("exit code %d, stderr %q", cmd.ProcessState.ExitCode(), stderr)
			}
			if left := names(t, dir); len(left) != 1 || left[0] != "x.plan.journal" {
				t.Fatalf("left behind: %v", left)
			}
			again := exec.Command("sandwich", append(args, "--resume")...)
			again.Dir = dir
			if out, err := again.CombinedOutput(); err != nil {
				t.Fatalf("resume: %v: %s", err, out)
			}
			if left := names(t, dir); len(left) != 1 || left[0] != "x.plan" {
				t.Errorf("after the resumed run: %v", left)
			}
		})
	}
}

// unmeasuredHost writes a profile of this machine without ceilings, so that tune measures only
// kernels, and returns its path.
func unmeasuredHost(t *testing.T) string {
	t.Helper()
	host := filepath.Join(t.TempDir(), "host.yaml")
	if code := root.Run(t.Context(), []string{"probe", "--measure", "none", "-o", host}, verbs()...); code != exit.OK {
		t.Fatalf("probe: exit code %d", code)
	}
	return host
}

// interruptedTune starts a search of three seconds and sends it a signal once its journal holds
// some finished trials. If the search ends before the signal or without a trial, because the
// machine is slow, it starts one of half a minute, then one of two minutes.
func interruptedTune(
	t *testing.T, dir, host string, signal syscall.Signal,
) (cmd *exec.Cmd, args []string, stderr *bytes.Buffer) {
	t.Helper()
	for _, budget := range []string{"3s", "30s", "2m"} {
		args = []string{"tune", "--profile", host, "--budget", budget, "--seq-max", "32", "--batch-max", "1",
			"-o", "x.plan"}
		cmd, stderr = exec.Command("sandwich", args...), &bytes.Buffer{}
		cmd.Dir, cmd.Stderr = dir, stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		plan := filepath.Join(dir, "x.plan")
		grown := journalGrows(plan)
		if grown {
			if err := cmd.Process.Signal(signal); err != nil {
				t.Fatal(err)
			}
		} else {
			cmd.Process.Kill()
		}
		if cmd.Wait() != nil && grown {
			return cmd, args, stderr
		}
		if err := errors.Join(os.RemoveAll(plan), os.RemoveAll(plan+".journal")); err != nil {
			t.Fatal(err)
		}
	}
	t.Fatalf("no tune was interrupted: they wrote no trial into their journals, or succeeded: %s", stderr)
	return nil, nil, nil
}

// journalGrows waits until a journal next to plan holds some finished trials. It returns false if
// the search ends before that.
func journalGrows(plan string) bool {
	for begun := time.Now(); time.Since(begun) < 3*time.Minute; time.Sleep(25 * time.Millisecond) {
		if data, err := os.ReadFile(plan + ".journal"); err == nil && bytes.Count(data, []byte("\n")) > 3 {
			return true
		}
		if _, err := os.Stat(plan); err == nil {
			return false
		}
	}
	return false
}

func names(t *testing.T, dir string) (out []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}
