package isomorph

import (
	"maps"
	"testing"

	"sandwich/topotree"
	"sandwich/topotree/hwloc"
)

func machine(t *testing.T, text string) *topotree.Machine {
	t.Helper()
	m, err := hwloc.ReadSynthetic(text)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func set(t *testing.T, text string) topotree.CPUSet {
	t.Helper()
	s, err := topotree.ParseCPUSet(text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestMap maps parts of a machine of two packages of two L3 caches of two cores of two threads to
// each other. PUs 2i and 2i+1 share a core.
func TestMap(t *testing.T) {
	m := machine(t, "pack:2 numa:1 l3:2 core:2 pu:2")
	for _, c := range []struct{ from, to, set, want string }{ // want "": not equivalent
		{"0-15", "0-15", "3,5", "3,5"},
		{"0", "1", "0", "1"},
		{"0", "15", "0", "15"},
		{"0-1", "14-15", "1", "15"},
		{"0-1", "0,2", "", ""},
		{"0,2", "12,14", "2", "14"},
		{"0,2", "0,4", "", ""},
		{"0,4", "0,8", "", ""},
		{"0-3,8", "4,12-15", "8,0-1", "4,12-13"},
		{"0-7", "8-15", "2,6", "10,14"},
		{"0-7", "0-6", "", ""},
	} {
		from, to := set(t, c.from), set(t, c.to)
		mapping, ok := Map(m.Tree, from, m.Tree, to)
		if ok != (c.want != "") || ok != (Digest(m.Tree, from) == Digest(m.Tree, to)) {
			t.Errorf("%s to %s: equivalent: %v", c.from, c.to, ok)
			continue
		}
		if got := mapping.Set(set(t, c.set)); ok && !got.Equal(set(t, c.want)) {
			t.Errorf("%s to %s maps %s to %s, want %s", c.from, c.to, c.set, got, c.want)
		}
		if ok && mapping.Identity() != from.Equal(to) {
			t.Errorf("%s to %s: identity: %v", c.from, c.to, mapping.Identity())
		}
		if got := mapping.Set(from); ok && !got.Equal(to) {
			t.Errorf("%s to %s maps all PUs to %s", c.from, c.to, got)
		}
	}
}

// TestMapNodes checks the mapping of NUMA nodes.
func TestMapNodes(t *testing.T) {
	m := machine(t, "pack:2 numa:1 l3:2 core:2 pu:2")
	mapping, ok := Map(m.Tree, set(t, "0-3"), m.Tree, set(t, "8-11"))
	if want := map[int]int{0: 1}; !ok || !maps.Equal(mapping.Nodes, want) {
		t.Errorf("%v, %v, want %v", mapping.Nodes, ok, want)
	}
}

// TestColors checks that PUs of different core types are not equivalent, even if the parts have the
// same shape and each part has one core type only.
func TestColors(t *testing.T) {
	d := machine(t, "pack:1 core:4 pu:1").Describe()
	d.CoreTypes = []topotree.CoreType{{Name: "performance", CPUs: set(t, "0-1")},
		{Name: "efficiency", CPUs: set(t, "2-3")}}
	m, err := d.Machine()
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := Map(m.Tree, set(t, "0"), m.Tree, set(t, "2")); ok {
		t.Error("a performance core is equivalent to an efficiency core")
	}
	if _, ok := Map(m.Tree, set(t, "0"), m.Tree, set(t, "1")); !ok {
		t.Error("two performance cores are not equivalent")
	}
}

// TestRenumbered maps a machine to one whose threads are numbered last.
func TestRenumbered(t *testing.T) {
	a := machine(t, "pack:1 core:2 pu:2")
	d := a.Describe()
	for i, l := range d.Levels {
		if l.Kind == topotree.KindCore {
			d.Levels[i].Sets = []topotree.CPUSet{set(t, "0,2"), set(t, "1,3")}
		}
	}
	b, err := d.Machine()
	if err != nil {
		t.Fatal(err)
	}
	m, ok := Map(a.Tree, a.Online, b.Tree, b.Online)
	if got := m.Set(set(t, "0-1")); !ok || !got.Equal(set(t, "0,2")) || m.Identity() {
		t.Errorf("the threads of core 0 are mapped to %s", got)
	}
}
