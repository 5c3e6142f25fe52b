package topotree_test

import (
	"testing"

	"sandwich/topotree"
	"sandwich/topotree/internal/topotest"
)

// TestMeasuredClasses colors slow nodes that no distance table shows, so that the fast ones alone
// become a plan.
func TestMeasuredClasses(t *testing.T) {
	m := topotest.Synthetic(t, "numa:4 core:4")
	colored, err := m.WithMeasured([]topotree.MeasuredClass{{Name: "fast", CPUs: topotree.CPURange(4, 11)},
		{Name: "slow", CPUs: topotree.NewCPUSet(0, 1, 2, 3, 12, 13, 14, 15)}})
	if err != nil {
		t.Fatal(err)
	}
	if p := colored.Tree.Palette(); len(p) != 2 || p[0].Name != "fast" || p[0].CPUs.String() != "4-11" {
		t.Fatalf("palette %+v", p)
	}
	if got := topotest.Apply(t, colored.Tree, "only(0)").CPUs().String(); got != "4-11" {
		t.Errorf("the fast nodes alone are %s", got)
	}
	if got := topotest.Apply(t, colored.Tree, "remove(2,2,1)").CPUs().String(); got != "0-1,4-13" {
		t.Errorf("half of the slow nodes off leaves %s", got)
	}
	if colored.Tree.Digest() == m.Tree.Digest() {
		t.Error("the digest does not see the classes")
	}
	if m.AsReported() != m || colored.AsReported().Tree.Digest() != m.Tree.Digest() {
		t.Error("the reported machine is another one")
	}
}
