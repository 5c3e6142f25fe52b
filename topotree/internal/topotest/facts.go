package topotest

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"sandwich/topotree"
)

// reportOf returns the report of a machine after a round trip through JSON.
func reportOf(t *testing.T, m *topotree.Machine) (topotree.Summary, factSets) {
	t.Helper()
	b, err := json.Marshal(m.Report())
	if err != nil {
		t.Fatal(err)
	}
	var r struct {
		Summary topotree.Summary `json:"summary"`
		Sets    factSets         `json:"sets"`
	}
	if err := json.Unmarshal(b, &r); err != nil {
		t.Fatal(err)
	}
	return r.Summary, r.Sets
}

// CheckFacts compares the counts and CPU sets of a machine with recorded facts.
func CheckFacts(t *testing.T, m *topotree.Machine, f Fact) {
	t.Helper()
	if err := m.Tree.Check(); err != nil {
		t.Errorf("tree: %v", err)
	}
	s, sets := reportOf(t, m)
	for _, c := range []struct {
		name      string
		got, want int
	}{
		{"packages", s.Packages, f.Packages}, {"numa_nodes", s.NUMANodes, f.NUMANodes},
		{"numa_localities", s.NUMALocalities, f.NUMALocalities}, {"dies", s.Dies, f.Dies},
		{"clusters", s.Clusters, f.Clusters}, {"l4", s.L4, f.L4}, {"l3", s.L3, f.L3}, {"l2", s.L2, f.L2},
		{"cores", s.Cores, f.Cores}, {"pus", s.PUs, f.PUs}, {"llc_level", s.LLCLevel, f.LLCLevel},
		{"llc", s.LLC, f.LLC},
		{"memory_side_caches", s.MemorySideCaches, f.MemCaches}, {"leaves", len(m.Tree.Level(m.Tree.Depth())), f.PUs},
	} {
		if c.got != c.want {
			t.Errorf("%s = %d, want %d", c.name, c.got, c.want)
		}
	}
	if f.ArchFrom != "file name" && s.Arch != f.Arch {
		t.Errorf("arch = %q, want %q", s.Arch, f.Arch)
	}
	if f.Sets == nil {
		return
	}
	if sets.Machine != f.Sets.Machine {
		t.Errorf("machine = %s, want %s", sets.Machine, f.Sets.Machine)
	}
	for _, c := range []struct {
		name      string
		got, want []string
	}{
		{"package", flat(sets.Package), flat(f.Sets.Package)}, {"numa", flat(sets.NUMA), flat(f.Sets.NUMA)},
		{"die", sets.Die, f.Sets.Die}, {"l3", sets.L3, f.Sets.L3}, {"l2", sets.L2, f.Sets.L2},
		{"cluster", sets.Cluster, f.Sets.Cluster}, {"core", sets.Core, f.Sets.Core},
	} {
		slices.Sort(c.got)
		slices.Sort(c.want)
		if !slices.Equal(c.got, c.want) {
			t.Errorf("%s = %v, want %v", c.name, c.got, c.want)
		}
	}
}

func flat(sets []numberedRaw) []string {
	out := make([]string, len(sets))
	for i, s := range sets {
		id := "none"
		if s.OS != nil {
			id = fmt.Sprint(*s.OS)
		}
		out[i] = id + ":" + s.CPUs
	}
	return out
}

// CheckDescription checks that a machine survives a round trip through its description.
func CheckDescription(t *testing.T, m *topotree.Machine) {
	t.Helper()
	back, err := m.Describe().Machine()
	if err != nil {
		t.Fatal(err)
	}
	a, _ := json.Marshal(m.Report())
	b, _ := json.Marshal(back.Report())
	if string(a) != string(b) {
		t.Errorf("the machine changed on the way through its description:\n%s\n%s", a, b)
	}
}
