package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestVersion runs packaging/version.sh in repositories with and without tags.
func TestVersion(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	script, err := filepath.Abs("../../../../packaging/version.sh")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	run := func(program string, args ...string) string {
		t.Helper()
		cmd := exec.Command(program, args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(dir), "GIT_CONFIG_GLOBAL=/dev/null",
			"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@localhost",
			"GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@localhost")
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%s %q: %v", program, args, err)
		}
		return strings.TrimSpace(string(out))
	}
	expect := func(what, want string) {
		t.Helper()
		if got := run("sh", script); got != want {
			t.Errorf("%s: version %q, want %q", what, got, want)
		}
	}
	commit := func() string {
		run("git", "commit", "-q", "--allow-empty", "-m", "x")
		return run("git", "rev-parse", "--short=7", "HEAD")
	}
	expect("without git", "0.1.0")
	run("git", "init", "-q")
	commit()
	expect("without a tag", "0.1.0")
	run("git", "tag", "vendor-1")
	expect("with another tag", "0.1.0")
	run("git", "tag", "v1.2.3")
	expect("at a tag", "1.2.3")
	commit()
	hash := commit()
	expect("after a tag", "1.2.3+2.g"+hash)
	if err := os.WriteFile(filepath.Join(dir, "file"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	run("git", "add", "file")
	expect("with changes", "1.2.3+2.g"+hash+".dirty")
	run("git", "tag", "v1.3.0")
	expect("with changes at a tag", "1.3.0+dirty")
}
