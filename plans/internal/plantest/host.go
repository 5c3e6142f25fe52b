package plantest

import (
	"slices"
	"testing"

	"sandwich/profiles"
	"sandwich/topotree"
)

// Rehost returns a host after a change of its description or identity.
func Rehost(t *testing.T, host *profiles.Profile, change func(*topotree.Description,
	*profiles.Identity)) *profiles.Profile {
	t.Helper()
	d, id := host.Machine.Describe(), host.Host
	id.ISA = slices.Clone(id.ISA)
	change(&d, &id)
	m, err := d.Machine()
	if err != nil {
		t.Fatal(err)
	}
	h := profiles.New(m, id)
	h.Ceilings = slices.Clone(host.Ceilings)
	return h
}
