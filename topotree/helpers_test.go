package topotree

import (
	"math/rand/v2"
	"slices"
	"testing"
)

func init() { verify = true } // every transform of every test checks the tree it made

func mustSynthetic(t testing.TB, text string) *Machine {
	t.Helper()
	m, err := ReadSynthetic(text)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func mustApply(t testing.TB, tree *Tree, texts ...string) *Tree {
	t.Helper()
	for _, text := range texts {
		x, err := ParseTransform(text)
		if err != nil {
			t.Fatal(err)
		}
		if tree, err = tree.Apply(x); err != nil {
			t.Fatal(err)
		}
	}
	return tree
}

// describe makes a machine of cores whose L2 groups, NUMA nodes and packages are given as lists of
// sets.
func describe(t testing.TB, d Description) *Machine {
	t.Helper()
	m, err := d.Machine()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// smallMachines are at most 12 PUs each: symmetric, hybrid, broken and uneven ones.
func smallMachines(t testing.TB) map[string]*Machine {
	t.Helper()
	out := map[string]*Machine{}
	for _, text := range []string{
		"pu:1", "core:4", "core:8", "core:12", "core:4 pu:2", "pack:2 core:4", "pack:2 numa:2 core:3",
		"numa:2 l3:2 core:3",
		"l3:3 core:2 pu:2", "pack:3 core:4", "pack:2 l3:1 l2:1 core:6", "l2:2 core:6",
	} {
		out[text] = mustSynthetic(t, text)
	}
	hybrid := Description{
		Online: CPURange(0, 11), Memory: []MemoryNode{{CPUs: CPURange(0, 11)}},
		Levels: []LevelData{
			{Kind: KindL2, Sets: []CPUSet{CPURange(0, 1), CPURange(2, 3), CPURange(4, 7), CPURange(8, 11)}},
			{Kind: KindCore, Sets: []CPUSet{CPURange(0, 1), CPURange(2, 3), CPURange(4, 4), CPURange(5, 5),
				CPURange(6, 6), CPURange(7, 7), CPURange(8, 8), CPURange(9, 9), CPURange(10, 10), CPURange(11, 11)}},
		},
		CoreTypes: []CoreType{{Name: "P", CPUs: CPURange(0, 3)}, {Name: "E", CPUs: CPURange(4, 11)}},
	}
	out["hybrid"] = describe(t, hybrid)
	hybrid.CoreTypes = nil
	out["hybrid, types unknown"] = describe(t, hybrid)
	out["even hybrid"] = describe(t, Description{
		Online: CPURange(0, 7), Memory: []MemoryNode{{CPUs: CPURange(0, 7)}},
		CoreTypes: []CoreType{{Name: "P", CPUs: NewCPUSet(0, 2, 4, 6)}, {Name: "E", CPUs: NewCPUSet(1, 3, 5, 7)}},
	})
	out["one core offline"] = describe(t, Description{
		Online: CPURange(0, 10), Memory: []MemoryNode{{ID: 0, CPUs: CPURange(0, 5)}, {ID: 1, CPUs: CPURange(6, 10)}},
		Levels: []LevelData{{Kind: KindPackage, Sets: []CPUSet{CPURange(0, 5), CPURange(6, 10)}}},
	})
	out["far node"] = describe(t, Description{
		Online: CPURange(0, 8),
		Memory: []MemoryNode{{ID: 0, CPUs: CPURange(0, 2)}, {ID: 1, CPUs: CPURange(3, 5)},
			{ID: 2, CPUs: CPURange(6, 8)}},
		Distances: &Distances{Nodes: []int{0, 1, 2}, Matrix: [][]int{{10, 12, 30}, {12, 10, 30}, {30, 30, 10}}},
	})
	return out
}

// renumbered returns the same machine with PU c called perm[c], and its objects listed in another
// order.
func renumbered(t testing.TB, m *Machine, r *rand.Rand) *Machine {
	t.Helper()
	pus := m.Online.Slice()
	names := r.Perm(MaxPUs / 8)[:len(pus)]
	perm := map[int]int{}
	for i, c := range pus {
		perm[c] = names[i]
	}
	rename := func(s CPUSet) CPUSet {
		var cpus []int
		for c := range s.All() {
			cpus = append(cpus, perm[c])
		}
		return NewCPUSet(cpus...)
	}
	d := m.Describe()
	d.Online, d.Allowed, d.Offline = rename(d.Online), CPUSet{}, CPUSet{}
	for i := range d.Levels {
		l := &d.Levels[i]
		l.Sets, l.IDs = slices.Clone(l.Sets), nil
		r.Shuffle(len(l.Sets), func(a, b int) { l.Sets[a], l.Sets[b] = l.Sets[b], l.Sets[a] })
		for j := range l.Sets {
			l.Sets[j] = rename(l.Sets[j])
		}
	}
	for i := range d.Memory {
		d.Memory[i].CPUs = rename(d.Memory[i].CPUs)
	}
	for i := range d.CoreTypes {
		d.CoreTypes[i].CPUs = rename(d.CoreTypes[i].CPUs)
	}
	return describe(t, d)
}
