package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestTuneIsInterrupted holds that a tune that is stopped keeps its journal, leaves no plan and nothing half-written, and
// goes on with --resume.
func TestTuneIsInterrupted(t *testing.T) {
	for name, signal := range map[string]syscall.Signal{"Ctrl-C": syscall.SIGINT, "kill -9": syscall.SIGKILL} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			host := filepath.Join(t.TempDir(), "host.yaml") // without roofs, so that nothing is measured but kernels
			if code := run(t.Context(), []string{"probe", "--measure", "none", "-o", host}); code != exitOK {
				t.Fatalf("probe: exit code %d", code)
			}
			args := []string{"tune", "--profile", host, "--budget", "3s", "--seq-max", "32", "--batch-max", "1", "-o", "x.plan"}
			cmd := exec.Command("sandwich", args...)
			cmd.Dir = dir
			var stderr bytes.Buffer
			cmd.Stderr = &stderr
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			waitForTrials(t, filepath.Join(dir, "x.plan.journal"))
			if err := cmd.Process.Signal(signal); err != nil {
				t.Fatal(err)
			}
			if cmd.Wait() == nil {
				t.Error("an interrupted tune succeeded")
			}
			if signal == syscall.SIGINT && (cmd.ProcessState.ExitCode() != exitFailed || !strings.Contains(stderr.String(), "--resume goes on")) {
				t.Errorf("exit code %d, stderr %q", cmd.ProcessState.ExitCode(), &stderr)
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

// waitForTrials waits until a journal holds some finished trials.
func waitForTrials(t *testing.T, path string) {
	t.Helper()
	for range 1200 {
		if data, err := os.ReadFile(path); err == nil && bytes.Count(data, []byte("\n")) > 3 {
			return
		}
		time.Sleep(25 * time.Millisecond)
	}
	t.Fatal("tune wrote no trial into its journal")
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
