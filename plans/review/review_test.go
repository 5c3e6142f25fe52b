package review

import (
	"slices"
	"testing"

	"sandwich/plans/internal/bundletest"
)

// TestFingerprintIsNoSetting checks that plans of two hosts with equal settings are reported so:
// the lines of the host say why the fingerprints differ.
func TestFingerprintIsNoSetting(t *testing.T) {
	a, b := bundletest.New(t), bundletest.New(t)
	b.Plan.Fingerprint = "another host"
	if r := Of(a, b, false); !slices.Contains(r.Unchanged, "all settings") {
		t.Errorf("unchanged: %q", r.Unchanged)
	}
	b.Plan.Name = "another name"
	if r := Of(a, b, false); !slices.Contains(r.Unchanged, "7 of 8 settings") {
		t.Errorf("unchanged: %q", r.Unchanged)
	}
}
