package tables

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sandwich/plans"
	"sandwich/tuner/search"
	"sandwich/tuner/trials"
)

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
		s := OpenStore(c.path, func(err error) { warned = append(warned, err.Error()) })
		if c.spoil != nil {
			c.spoil(s.wisdom)
		}
		s.keep("one", result, nil, search.Quick, 1)
		s.keep("two", result, nil, search.Quick, 1)
		if len(warned) > 1 || strings.Join(warned, "") == "" != (c.want == "") ||
			!strings.Contains(strings.Join(warned, ""), c.want) {
			t.Errorf("%s: warned %q, want %q", name, warned, c.want)
		}
		if err := s.Close(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
