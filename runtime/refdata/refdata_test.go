package refdata

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestPlaces checks that names are found in the repository first, then below the variable, and that
// a test that needs neither's is skipped.
func TestPlaces(t *testing.T) {
	const inside, outside = "machines/zen5-2c/host.yaml", "machines/other/host.yaml"
	dir := t.TempDir()
	for _, name := range []string{inside, outside} {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	skips := func(name string) bool {
		skipped := true
		t.Run("skipped", func(t *testing.T) {
			Path(t, name)
			skipped = false
		})
		return skipped
	}
	t.Setenv(variable, "")
	if got := Path(t, inside); strings.HasPrefix(got, dir) {
		t.Errorf("%s is %s", inside, got)
	}
	if got := Glob(t, "machines/*/host.yaml"); len(got) != 1 {
		t.Errorf("found %q", got)
	}
	if !skips(outside) {
		t.Errorf("%s was found without the variable", outside)
	}
	t.Setenv(variable, dir)
	if got := Path(t, inside); strings.HasPrefix(got, dir) {
		t.Errorf("%s is %s, although the repository has it", inside, got)
	}
	if got, want := Path(t, outside), filepath.Join(dir, outside); got != want {
		t.Errorf("%s is %s, want %s", outside, got, want)
	}
	all := []string{Path(t, outside), Path(t, inside)}
	if got := Glob(t, "machines/*/host.yaml"); !slices.Equal(got, all) {
		t.Errorf("found %q, want %q", got, all)
	}
	if !skips("machines/none/host.yaml") {
		t.Error("a file that is nowhere was found")
	}
}

// TestSize checks that the repository stays small enough to be cloned.
func TestSize(t *testing.T) {
	var bytes int64
	err := filepath.WalkDir("testdata", func(_ string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		st, err := d.Info()
		bytes += st.Size()
		return err
	})
	if err != nil || bytes > 25e6 {
		t.Errorf("%d bytes of reference data, %v; at most 25 MB", bytes, err)
	}
}
