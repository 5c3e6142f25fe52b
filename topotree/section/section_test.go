package section_test

import (
	"testing"

	"sandwich/topotree"
	"sandwich/topotree/enumerate"
	"sandwich/topotree/internal/topotest"
	"sandwich/topotree/section"
)

// TestPaperKunpeng rebuilds figure 3(a) and section 5.3 of the Sandwich paper: SC-RM takes one core
// of each cluster of four, NUMA-RM the last six of each node.
func TestPaperKunpeng(t *testing.T) {
	m := topotest.Synthetic(t, topotest.Kunpeng920)
	scrm := topotest.Apply(t, m.Tree, "group(4,1,4)", "remove(1,5)")
	numarm := topotest.Apply(t, m.Tree, "remove(6,4)")
	strided := topotest.Apply(t, m.Tree, "group(4,6,4)", "remove(1,5)")
	for name, tree := range map[string]*topotree.Tree{"SC-RM": scrm, "NUMA-RM": numarm} {
		if tree.PUs() != 144 {
			t.Errorf("%s leaves %d PUs, want 144", name, tree.PUs())
		}
	}
	if got := numarm.Level(2)[0].CPUs.String(); got != "0-17" {
		t.Errorf("NUMA-RM leaves %s of the first node, want 0-17", got)
	}
	if got := scrm.Level(4)[0].CPUs.String(); got != "0-2" {
		t.Errorf("SC-RM leaves %s of the first cluster, want 0-2", got)
	}
	if got := strided.Full().Level(4)[0].CPUs.String(); got != "0,6,12,18" {
		t.Errorf("group(4,6,4) takes %s first, want 0,6,12,18", got)
	}
	want := map[topotree.Digest]string{scrm.Digest(): "SC-RM", numarm.Digest(): "NUMA-RM", strided.Digest(): "stride 6",
		m.Tree.Digest(): "fundamental"}
	if len(want) != 4 {
		t.Fatal("different plans share a digest")
	}
	for tree := range enumerate.Trees(m.Tree, enumerate.Bounds{}) {
		delete(want, tree.Digest())
	}
	for _, name := range want {
		t.Errorf("%s is not in the enumeration", name)
	}
	ranks := map[int][2]int{} // TP -> PUs per rank in prefill and decode
	for _, s := range section.Of(scrm) {
		if !s.Even {
			t.Errorf("the cut at depth %d is uneven", s.Depth)
		}
		if !s.Repeats {
			ranks[s.TP] = [2]int{s.Ranks[0].Prefill.Count(), s.Ranks[0].Decode.Count()}
		}
	}
	for tp, pus := range map[int][2]int{1: {192, 144}, 4: {48, 36}, 8: {24, 18}, 48: {4, 3}, 144: {1, 1}} {
		if ranks[tp] != pus {
			t.Errorf("TP %d has %v PUs per rank, want %v", tp, ranks[tp], pus)
		}
	}
	if len(ranks) != 5 {
		t.Errorf("cuts %v, want 5", ranks)
	}
}

// TestRanks checks the nodes, caches and phases of a rank.
func TestRanks(t *testing.T) {
	m := topotest.Synthetic(t, "pack:2 numa:2 l3:2(size=1MiB) core:4")
	tree := topotest.Apply(t, m.Tree, "remove(1,4)")
	for _, s := range section.Of(tree) {
		first := s.Ranks[0]
		switch s.Kind {
		case topotree.KindPackage:
			if len(first.NUMA) != 2 || len(first.LLC) != 4 || first.Prefill.String() != "0-15" ||
				first.Decode.Count() != 12 {
				t.Errorf("package rank %+v", first)
			}
		case topotree.KindL3:
			if len(first.NUMA) != 1 || len(first.LLC) != 1 || first.Prefill.String() != "0-3" ||
				first.Decode.String() != "0-2" {
				t.Errorf("l3 rank %+v", first)
			}
		case topotree.KindCore:
			if first.LLC[0].String() != "0-3" || !first.Prefill.Equal(first.Decode) {
				t.Errorf("core rank %+v", first)
			}
		}
		if !s.DecodePUs().Equal(tree.CPUs()) {
			t.Errorf("the ranks at depth %d decode on %s, the tree has %s", s.Depth, s.DecodePUs(), tree.CPUs())
		}
	}
}

// TestEachColorAlone keeps one class of cores for decode while prefill uses all of each rank.
func TestEachColorAlone(t *testing.T) {
	m := topotest.SmallMachines(t)["hybrid"]
	fast := topotest.Apply(t, m.Tree, "only(0)")
	if fast.CPUs().String() != "0-3" {
		t.Fatalf("only(0) keeps %s, want the P cores 0-3", fast.CPUs())
	}
	s := section.Of(fast)[0]
	if s.PrefillPUs().Count() != 12 || !s.DecodePUs().Equal(fast.CPUs()) {
		t.Errorf("prefill on %s, decode on %s", s.PrefillPUs(), s.DecodePUs())
	}
	found := 0
	for tree := range enumerate.Trees(m.Tree, enumerate.Bounds{}) {
		if tree.Digest() == fast.Digest() {
			found++
		}
	}
	if found != 1 {
		t.Errorf("the P cores alone come %d times", found)
	}
	uneven := topotest.Apply(t, m.Tree, "remove(2,3,1)")
	for _, s := range section.Of(uneven) {
		if s.Kind == topotree.KindL2 && s.Even {
			t.Error("L2 caches of two and four cores pass for even")
		}
	}
}
