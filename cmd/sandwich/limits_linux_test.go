package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
)

// TestLimitIsNamed runs verbs under limits of the data segment and of open files that leave too
// little: each that needs more ends with one sentence that names the limit. Much smaller limits of
// memory end the Go runtime before the program begins.
func TestLimitIsNamed(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	program := filepath.Join(dir, "sandwich")
	if err := os.Symlink(self, program); err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]string{
		`ulimit -d 150000; exec "$0" generate -p hi -n 1`:        "(ulimit -d)",
		`ulimit -d 150000; exec "$0" serve --listen 127.0.0.1:0`: "(ulimit -d)",
		`ulimit -d 150000; exec "$0" version`:                    "",
		`ulimit -n 8; exec "$0" generate -p hi -n 1`:             "may open 8 files (ulimit -n)",
		`ulimit -n 10; exec "$0" serve --listen 127.0.0.1:0`:     "may open 10 files (ulimit -n)",
		`ulimit -n 24; exec "$0" generate -p hi -n 1`:            "",
	} {
		cmd := exec.Command("sh", "-c", line, program)
		cmd.Env = append(os.Environ(), "XDG_DATA_HOME="+dir, "XDG_RUNTIME_DIR="+dir)
		out, err := cmd.CombinedOutput()
		text := string(out)
		if isRaceBuild() && (strings.Contains(text, "fatal error: ") || strings.Contains(text, "ThreadSanitizer")) {
			t.Skipf("the race detector does not start under these limits; run without -race: %.200s", text)
		}
		if (err != nil) != (want != "") || !strings.Contains(text, want) {
			t.Errorf("%s: %v, %s", line, err, text)
		}
	}
}

// isRaceBuild reports whether this program was built with the race detector.
func isRaceBuild() bool {
	info, ok := debug.ReadBuildInfo()
	return ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}
