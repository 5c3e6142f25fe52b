package topotest

import (
	"math/rand/v2"
	"slices"
	"testing"

	"sandwich/topotree"
	"sandwich/topotree/hwloc"
	"sandwich/topotree/internal/verify"
)

func init() { verify.Trees = true }

// WithoutVerify disables the checks of transforms, and returns a function that enables them again.
func WithoutVerify() (enable func()) {
	verify.Trees = false
	return func() { verify.Trees = true }
}

// Synthetic returns the machine of an hwloc synthetic string.
func Synthetic(t testing.TB, text string) *topotree.Machine {
	t.Helper()
	m, err := hwloc.ReadSynthetic(text)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// Apply applies transforms in their text form.
func Apply(t testing.TB, tree *topotree.Tree, texts ...string) *topotree.Tree {
	t.Helper()
	for _, text := range texts {
		x, err := topotree.ParseTransform(text)
		if err != nil {
			t.Fatal(err)
		}
		if tree, err = tree.Apply(x); err != nil {
			t.Fatal(err)
		}
	}
	return tree
}

// describe returns the machine that d describes.
func describe(t testing.TB, d topotree.Description) *topotree.Machine {
	t.Helper()
	m, err := d.Machine()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// SmallMachines returns machines of at most 12 PUs each by name: symmetric ones, hybrid ones, and
// ones with offline PUs or an uneven shape.
func SmallMachines(t testing.TB) map[string]*topotree.Machine {
	t.Helper()
	pus := topotree.CPURange
	out := map[string]*topotree.Machine{}
	for _, text := range []string{
		"pu:1", "core:4", "core:8", "core:12", "core:4 pu:2", "pack:2 core:4", "pack:2 numa:2 core:3",
		"numa:2 l3:2 core:3",
		"l3:3 core:2 pu:2", "pack:3 core:4", "pack:2 l3:1 l2:1 core:6", "l2:2 core:6",
	} {
		out[text] = Synthetic(t, text)
	}
	hybrid := topotree.Description{
		Online: pus(0, 11), Memory: []topotree.MemoryNode{{CPUs: pus(0, 11)}},
		Levels: []topotree.LevelData{
			{Kind: topotree.KindL2, Sets: []topotree.CPUSet{pus(0, 1), pus(2, 3), pus(4, 7), pus(8, 11)}},
			{Kind: topotree.KindCore, Sets: []topotree.CPUSet{pus(0, 1), pus(2, 3), pus(4, 4), pus(5, 5), pus(6, 6),
				pus(7, 7), pus(8, 8), pus(9, 9), pus(10, 10), pus(11, 11)}},
		},
		CoreTypes: []topotree.CoreType{{Name: "P", CPUs: pus(0, 3)},
			{Name: "E", CPUs: pus(4, 11)}},
	}
	out["hybrid"] = describe(t, hybrid)
	hybrid.CoreTypes = nil
	out["hybrid, types unknown"] = describe(t, hybrid)
	out["even hybrid"] = describe(t, topotree.Description{
		Online: pus(0, 7), Memory: []topotree.MemoryNode{{CPUs: pus(0, 7)}},
		CoreTypes: []topotree.CoreType{{Name: "P", CPUs: topotree.NewCPUSet(0, 2, 4, 6)},
			{Name: "E", CPUs: topotree.NewCPUSet(1, 3, 5, 7)}},
	})
	out["one core offline"] = describe(t, topotree.Description{
		Online: pus(0, 10), Memory: []topotree.MemoryNode{{ID: 0, CPUs: pus(0, 5)},
			{ID: 1, CPUs: pus(6, 10)}},
		Levels: []topotree.LevelData{{Kind: topotree.KindPackage, Sets: []topotree.CPUSet{pus(0, 5),
			pus(6, 10)}}},
	})
	out["far node"] = describe(t, topotree.Description{
		Online: pus(0, 8),
		Memory: []topotree.MemoryNode{{ID: 0, CPUs: pus(0, 2)}, {ID: 1, CPUs: pus(3, 5)},
			{ID: 2, CPUs: pus(6, 8)}},
		Distances: &topotree.Distances{Nodes: []int{0, 1, 2}, Matrix: [][]int{{10, 12, 30}, {12, 10, 30},
			{30, 30, 10}}},
	})
	return out
}

// Renumbered returns the same machine with other PU numbers and its objects in another order.
func Renumbered(t testing.TB, m *topotree.Machine, r *rand.Rand) *topotree.Machine {
	t.Helper()
	pus := m.Online.Slice()
	names := r.Perm(topotree.MaxPUs / 8)[:len(pus)]
	perm := map[int]int{}
	for i, c := range pus {
		perm[c] = names[i]
	}
	rename := func(s topotree.CPUSet) topotree.CPUSet {
		var cpus []int
		for c := range s.All() {
			cpus = append(cpus, perm[c])
		}
		return topotree.NewCPUSet(cpus...)
	}
	d := m.Describe()
	d.Online, d.Allowed, d.Offline = rename(d.Online), topotree.CPUSet{}, topotree.CPUSet{}
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
