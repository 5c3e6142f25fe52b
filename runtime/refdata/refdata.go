// Package refdata finds the reference data of tests: descriptions of machines, small models, and
// what other implementations compute with them. Only tests import it.
package refdata

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// variable names the environment variable with the folder of what the repository does not hold.
const variable = "SANDWICH_TESTDATA"

// Path returns a file or folder of the reference data by its name with slashes, such as
// parity/models/llama-q4_k.gguf: the one in the repository, else the one below SANDWICH_TESTDATA.
// Where neither exists it skips the test.
func Path(t testing.TB, name string) string {
	t.Helper()
	for _, root := range roots(t) {
		path := filepath.Join(root, filepath.FromSlash(name))
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	t.Skipf("%s is not in the repository: set %s to the folder that holds it", name, variable)
	return ""
}

// Glob returns the files of the reference data that match a pattern of names with slashes, sorted
// by name, each once. Where there are none it skips the test.
func Glob(t testing.TB, pattern string) []string {
	t.Helper()
	out := Find(t, pattern)
	if len(out) == 0 {
		t.Skipf("nothing matches %s in the repository: set %s to the folder that holds it", pattern, variable)
	}
	return out
}

// Find returns the same files as Glob, or none.
func Find(t testing.TB, pattern string) []string {
	t.Helper()
	found := map[string]string{} // by name
	for _, root := range roots(t) {
		paths, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(pattern)))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			name, err := filepath.Rel(root, path)
			if err != nil {
				t.Fatal(err)
			}
			if _, ok := found[name]; !ok {
				found[name] = path
			}
		}
	}
	var names, out []string
	for name := range found {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		out = append(out, found[name])
	}
	return out
}

// roots are the folders that hold reference data, the one in the repository first.
func roots(t testing.TB) []string {
	t.Helper()
	out := []string{filepath.Join(repository(t), "runtime", "refdata", "testdata")}
	if dir := os.Getenv(variable); dir != "" {
		out = append(out, dir)
	}
	return out
}

// repository returns the folder of go.mod, which is above the folder in which tests run.
func repository(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		up := filepath.Dir(dir)
		if up == dir {
			t.Fatal("there is no go.mod above the folder of the test")
		}
		dir = up
	}
}
