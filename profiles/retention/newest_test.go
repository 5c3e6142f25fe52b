package retention

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// TestNewest checks that a host's own file and the two newest others stay, in a folder whose name
// has characters of patterns, and that files of other hosts and kinds stay as well.
func TestNewest(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "a[b*")
	if err := os.Mkdir(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	for i, name := range []string{"x-1-own.yaml", "x-1-a.yaml", "x-1-b.yaml", "x-1-c.yaml", "x-1-d.yaml", "x-2-e.yaml",
		"x-1-f.json"} {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, nil, 0o644); err != nil {
			t.Fatal(err)
		}
		age := time.Duration(i) * time.Hour // the own one but for which all are older is older still
		if i == 0 {
			age = 1000 * time.Hour
		}
		if err := os.Chtimes(path, now.Add(-age), now.Add(-age)); err != nil {
			t.Fatal(err)
		}
	}
	for _, own := range []string{"x-1-own.yaml", "x-1-new.yaml"} {
		if err := Newest(filepath.Join(folder, own), "x-1-", ".yaml"); err != nil {
			t.Fatal(err)
		}
		var left []string
		files, err := os.ReadDir(folder)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			left = append(left, f.Name())
		}
		want := []string{"x-1-a.yaml", "x-1-b.yaml", "x-1-f.json", "x-1-own.yaml", "x-2-e.yaml"}
		if own == "x-1-new.yaml" {
			want = []string{"x-1-a.yaml", "x-1-b.yaml", "x-1-f.json", "x-2-e.yaml"}
		}
		if !slices.Equal(left, want) {
			t.Errorf("of the files of %s, %v stay; want %v", own, left, want)
		}
	}
	if err := Newest(filepath.Join(folder, "gone", "x.yaml"), "x", ""); err == nil {
		t.Error("a folder that is not there is no error")
	}
}
