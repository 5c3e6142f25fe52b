package summary

import (
	"testing"

	"sandwich/profiles"
	"sandwich/topotree"
	"sandwich/topotree/hwloc"
)

func TestPUWords(t *testing.T) {
	for _, c := range []struct {
		machine, pus, want string
	}{
		{"core:4 pu:1", "0-3", "all 4 cores"},
		{"core:4 pu:2", "0-7", "all 4 cores with their SMT siblings"},
		{"core:4 pu:2", "0,2,4,6", "all 4 cores"},
		{"core:4 pu:2", "0,2,3", "2 of 4 cores, 1 of them with SMT siblings"},
		{"core:4 pu:1", "0-2", "3 of 4 cores"},
		{"core:1 pu:1", "0", "the only core"},
		{"l3:4 core:4 pu:1", "0,4,8,12", "one core of each L3"},
		{"l3:4 core:4 pu:1", "0,1,4,5,8,9,12,13", "2 cores of each L3"},
		{"l3:4 core:4 pu:1", "4-7", "L3 1"},
		{"l3:4 core:4 pu:1", "0-5", "6 of 16 cores"},
		{"numa:2 l3:2 core:4 pu:1", "0-7", "node 0"},
		{"numa:4 l3:2 core:4 pu:1", "8-23", "node 1 and node 2"},
		{"pack:2 numa:2 l3:2 core:4 pu:1", "0,4,8,12,16,20,24,28", "one core of each L3"},
		{"core:4 pu:1", "9", "1 PU, some of which this machine lacks"},
	} {
		m, err := hwloc.ReadSynthetic(c.machine)
		if err != nil {
			t.Fatal(err)
		}
		var pus topotree.CPUSet
		if err := pus.UnmarshalText([]byte(c.pus)); err != nil {
			t.Fatal(err)
		}
		if got := describePUs(profiles.New(m, profiles.Identity{}), pus); got != c.want {
			t.Errorf("%s of %q: %q, want %q", c.pus, c.machine, got, c.want)
		}
	}
}
