// Package testdata finds the reference data that lies outside the repository. Only tests import it.
package testdata

import (
	"os"
	"path/filepath"
	"testing"
)

// Folder returns a folder of the reference data: under SANDWICH_TESTDATA, else under ../shared
// beside the repository. The test is skipped with a message where it is absent.
func Folder(t testing.TB, name string) string {
	t.Helper()
	root := os.Getenv("SANDWICH_TESTDATA")
	if root == "" {
		root = filepath.Join(repository(t), "..", "shared")
	}
	dir := filepath.Join(root, name)
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("reference data is not here: %v (set SANDWICH_TESTDATA to the folder that holds %s)", err, name)
	}
	return dir
}

// repository is the folder of go.mod.
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
			t.Fatal("no go.mod above the test's folder")
		}
		dir = up
	}
}
