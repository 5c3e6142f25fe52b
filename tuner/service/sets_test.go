package service

import (
	"slices"
	"testing"

	"sandwich/profiles"
	"sandwich/topotree"
)

func profileOf(t *testing.T, synthetic string) *profiles.Profile {
	t.Helper()
	m, err := topotree.ReadSynthetic(synthetic)
	if err != nil {
		t.Fatal(err)
	}
	return profiles.New(m, profiles.Identity{Arch: "amd64"})
}

func find(sets []Set, n int) []Set {
	var out []Set
	for _, s := range sets {
		if len(s.PUs) == n {
			out = append(out, s)
		}
	}
	return out
}

func TestSetsOfSmallMachines(t *testing.T) {
	for _, c := range []struct {
		machine string
		want    []string
	}{
		{"core:1", []string{"0"}},
		{"core:2", []string{"0-1", "0"}},
		{"core:2 pu:2", []string{"0-3", "0,2", "0-1", "0"}},
		{"l3:2 core:2", []string{"0-3", "0,2", "0-1", "0"}},
	} {
		sets, err := Sets(profileOf(t, c.machine))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, s := range sets {
			got = append(got, s.PUs.String())
		}
		for _, w := range c.want {
			if !slices.Contains(got, w) {
				t.Errorf("%s: %s is missing in %q", c.machine, w, got)
			}
		}
		if len(slices.Compact(slices.Sorted(slices.Values(got)))) != len(got) {
			t.Errorf("%s: a set appears twice in %q", c.machine, got)
		}
		if got[0] != c.want[0] {
			t.Errorf("%s: the first set is %s, not all PUs", c.machine, got[0])
		}
	}
}

// One core of each four-core cluster removed, and the same number from the end of each node, are
// both candidates on Kunpeng 920.
func TestSetsOfKunpeng(t *testing.T) {
	p, err := profiles.Builtin("kunpeng920")
	if err != nil {
		t.Fatal(err)
	}
	sets, err := Sets(p)
	if err != nil {
		t.Fatal(err)
	}
	perCluster, perNode := false, false
	for _, s := range find(sets, 144) {
		missing := func(pu int) bool { return !slices.Contains(s.PUs, pu) }
		perCluster = perCluster || missing(3) && missing(7) && missing(23)
		perNode = perNode || missing(18) && missing(23) && missing(42)
	}
	if !perCluster || !perNode {
		t.Errorf("of %d sets, one core per cluster removed: %v, six per node: %v", len(sets), perCluster, perNode)
	}
	if len(sets) > 4000 {
		t.Errorf("%d sets", len(sets))
	}
	t.Logf("%d sets", len(sets))
}

func TestRanking(t *testing.T) {
	p := profileOf(t, "core:4")
	for n, bw := range map[int]float64{1: 10, 2: 18, 3: 20, 4: 19} {
		p.Ceilings = append(p.Ceilings, profiles.Ceiling{Kind: profiles.Bandwidth, Level: "memory", PUs: n,
			Figure: profiles.Figure{Median: bw, Assumed: true}},
			profiles.Ceiling{Kind: profiles.Compute, ISA: "avx2", Type: "f32", PUs: n,
				Figure: profiles.Figure{Median: float64(n), Assumed: true}})
	}
	sets, err := Sets(p)
	if err != nil {
		t.Fatal(err)
	}
	if d := Decode(p, sets); len(d[0].PUs) != 3 || d[0].Rate != 20 {
		t.Errorf("decode: the best set is %v", d[0])
	}
	pre := Prefill(p, "avx2", "f32", sets)
	if len(pre[0].PUs) != 4 {
		t.Errorf("prefill: the best set is %v", pre[0])
	}
	sizes := map[int]int{}
	for _, s := range Top(Decode(p, sets), 4) {
		sizes[len(s.PUs)]++
	}
	if len(sizes) != 4 {
		t.Errorf("the top 4 of 4 sizes are of %d sizes", len(sizes))
	}
	c, err := Join(p, pre[0], Decode(p, sets)[0])
	if err != nil || c.TP() != 1 || len(c.Ranks[0].PUs) != 4 || len(c.DecodePUs) != 3 {
		t.Errorf("%+v %v", c, err)
	}
}
