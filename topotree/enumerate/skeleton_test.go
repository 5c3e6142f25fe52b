package enumerate_test

import (
	"testing"

	"sandwich/topotree/enumerate"
	"sandwich/topotree/internal/topotest"
)

// TestKeptWithoutBuilding checks that the properties that an enumerated tree reports without its
// nodes equal those of its nodes.
func TestKeptWithoutBuilding(t *testing.T) {
	machines := topotest.SmallMachines(t)
	machines["kunpeng"] = topotest.Synthetic(t, "pack:2 numa:2 core:12")
	for name, m := range machines {
		for tree := range enumerate.Trees(m.Tree, enumerate.Bounds{MaxTrees: 3000}) {
			cpus, full := tree.CPUs(), tree.Full()
			built, err := m.Tree.ApplyAll(tree.Transforms()...)
			if err != nil {
				t.Fatal(err)
			}
			if !cpus.Equal(built.Root().CPUs) || !cpus.Equal(tree.Root().CPUs) {
				t.Fatalf("%s, %v: PUs %s, its nodes have %s", name, tree.Transforms(), cpus, built.Root().CPUs)
			}
			if want := built.Full(); full.Digest() != want.Digest() || full.Depth() != want.Depth() {
				t.Fatalf("%s, %v: another tree before removing", name, tree.Transforms())
			}
		}
	}
}
