package heuristic

import (
	"strings"
	"testing"

	"sandwich/profiles"
	"sandwich/topotree"
)

// TestMakeRanks checks that ranks follow the nodes of a machine if their number fits, and are
// ranges of adjacent PUs otherwise.
func TestMakeRanks(t *testing.T) {
	p, err := profiles.Builtin("kunpeng920")
	if err != nil {
		t.Fatal(err)
	}
	pus := p.UsablePUs()
	node := pus.Count() / 8
	for _, n := range []int{1, 2, 3, 4, 7, 8, 16} {
		ranks, err := MakeRanks(p, pus, n)
		if err != nil {
			t.Fatal(err)
		}
		var all topotree.CPUSet
		for i, r := range ranks {
			all = all.Union(r.PUs)
			if n == 8 && (r.PUs.Count() != node || r.NUMANode != i) {
				t.Errorf("rank %d of 8 has %d PUs of node %d, want %d of node %d", i, r.PUs.Count(), r.NUMANode, node,
					i)
			}
			if n == 16 && r.NUMANode != i/2 {
				t.Errorf("rank %d of 16 is on node %d", i, r.NUMANode)
			}
			if n == 4 && r.NUMANode != -1 {
				t.Errorf("rank %d of 4, over two nodes, is bound to node %d", i, r.NUMANode)
			}
			if diff := r.PUs.Count() - pus.Count()/n; len(ranks) != n || diff < 0 || diff > 1 {
				t.Errorf("rank %d of %d has %d of %d PUs", i, n, r.PUs.Count(), pus.Count())
			}
		}
		if !all.Equal(pus) {
			t.Errorf("%d ranks have the PUs %s", n, all)
		}
	}
	if _, err := MakeRanks(p, topotree.NewCPUSet(pus.Slice()[:2]...), 3); err == nil ||
		!strings.Contains(err.Error(), "3 ranks on 2 PUs (0-1)") {
		t.Errorf("3 ranks on two PUs: %v", err)
	}
}

// TestFewThreadsOfManyRanks checks that each rank keeps a separate node if there are fewer threads
// than cores.
func TestFewThreadsOfManyRanks(t *testing.T) {
	host, err := profiles.Builtin("kunpeng920")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		threads int
		want    []int // PUs of each rank
	}{{8, []int{1, 1, 1, 1, 1, 1, 1, 1}}, {10, []int{2, 2, 1, 1, 1, 1, 1, 1}}} {
		s, err := Options{Threads: c.threads, TP: 8}.service(host)
		if err != nil {
			t.Fatal(err)
		}
		for i, r := range s.Ranks {
			if r.PUs.Count() != c.want[i] || r.NUMANode != i {
				t.Errorf("%d threads: rank %d has the PUs %s on node %d, want %d on node %d", c.threads, i, r.PUs,
					r.NUMANode, c.want[i], i)
			}
		}
		if s.PrefillPUs.Count() != c.threads || !s.PrefillPUs.Equal(s.DecodePUs) {
			t.Errorf("%d threads: prefill on %s, decode on %s", c.threads, s.PrefillPUs, s.DecodePUs)
		}
	}
}
