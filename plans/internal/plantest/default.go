// Package plantest has models, plans and evidence for the tests of plans and its sub-packages.
package plantest

import (
	"testing"

	"sandwich/plans"
	"sandwich/plans/heuristic"
	"sandwich/profiles"
)

// Default returns the default plan of a host and a model with a compute path, "" for any.
func Default(t testing.TB, h *profiles.Profile, s plans.ModelShape, compute string) *plans.Plan {
	t.Helper()
	p, err := heuristic.Default(h, s, heuristic.Options{Compute: compute})
	if err != nil {
		t.Fatal(err)
	}
	return p
}
