package tuner

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"sandwich/plans"
	"sandwich/profiles/retention"
	"sandwich/tuner/search"
	"sandwich/tuner/trials"
)

// within fails the test if f does not return in time.
func within(t *testing.T, what string, f func() error) error {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- f() }()
	select {
	case err := <-done:
		return err
	case <-time.After(30 * time.Second):
		t.Fatalf("%s does not return", what)
		return nil
	}
}

// TestSpecialGridFiles puts a pipe and a folder in the place of a grid: each is refused at once and
// stays.
func TestSpecialGridFiles(t *testing.T) {
	for what, open := range map[string]func(path string) error{
		"grid": func(path string) error { _, err := openGrid(path); return err },
	} {
		for kind, create := range map[string]func(path string) error{
			"pipe":   func(path string) error { return syscall.Mkfifo(path, 0o600) },
			"folder": func(path string) error { return os.Mkdir(path, 0o700) },
		} {
			path := filepath.Join(t.TempDir(), "wisdom-host-build.jsonl")
			if err := create(path); err != nil {
				t.Fatal(err)
			}
			err := within(t, what, func() error { return open(path) })
			if !errors.Is(err, retention.ErrNotRegular) || !strings.Contains(err.Error(), path) {
				t.Errorf("%s, a %s: %v", what, kind, err)
			}
			if st, err := os.Stat(path); err != nil || st.Mode().IsRegular() {
				t.Errorf("%s: the %s became %v, %v", what, kind, st, err)
			}
		}
	}
}

// TestTrialsAreOptional checks that a folder or file of kernel trials that cannot be used is one
// warning and does not end the run.
func TestTrialsAreOptional(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	result := &search.Result{Anchors: []search.Anchor{{M: 1, Schedule: plans.Schedule{}, Seconds: []float64{1}}}}
	for name, c := range map[string]struct {
		path  string
		spoil func(w *trials.Wisdom)
		want  string
	}{
		"no path":        {"", nil, ""},
		"usable":         {filepath.Join(dir, "data", "wisdom-a-b.jsonl"), nil, ""},
		"below a file":   {filepath.Join(file, "wisdom-a-b.jsonl"), nil, "kernel trials of earlier runs"},
		"gone meanwhile": {filepath.Join(dir, "wisdom-a-b.jsonl"), func(w *trials.Wisdom) { w.Close() }, "storing"},
	} {
		var warned []string
		run := &tuning{o: Options{Wisdom: c.path, Warn: func(err error) { warned = append(warned, err.Error()) }}}
		run.openWisdom()
		if c.spoil != nil {
			c.spoil(run.wisdom)
		}
		run.keepTrials("one", result, nil, 1)
		run.keepTrials("two", result, nil, 1)
		if len(warned) > 1 || strings.Join(warned, "") == "" != (c.want == "") ||
			!strings.Contains(strings.Join(warned, ""), c.want) {
			t.Errorf("%s: warned %q, want %q", name, warned, c.want)
		}
		if err := run.wisdom.Close(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
