// Package bundletest has bundles for the tests of packages that read or describe them.
package bundletest

import (
	"path/filepath"
	"testing"

	"sandwich/plans/bundle"
	"sandwich/plans/internal/plantest"
)

// New returns a small bundle with a value in every field.
func New(t testing.TB) *bundle.Bundle {
	t.Helper()
	plan, host, record := plantest.Parts(t)
	return &bundle.Bundle{Plan: plan, Host: host, Evidence: record}
}

// Write writes a bundle to a new folder and returns its path.
func Write(t testing.TB, b *bundle.Bundle) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "x.plan")
	if err := b.Write(dir); err != nil {
		t.Fatal(err)
	}
	return dir
}
