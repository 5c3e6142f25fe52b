package sysfs

import (
	"reflect"
	"strings"
	"testing"

	"sandwich/topotree"
	"sandwich/topotree/internal/topotest"
)

const gib = int64(1 << 30)

// TestNodesWithTheSameCPUs reads machines with emulated NUMA nodes: each set of CPUs is one
// locality with the memory of all its nodes.
func TestNodesWithTheSameCPUs(t *testing.T) {
	eight := func() fixture { return fixture{}.cores(4, upTo(8)...).online("0-7") }
	for _, c := range []struct {
		name   string
		files  fixture
		nodes  int
		places []string
		bytes  []int64
		note   string
	}{
		{"two", eight().nodes(2, "0-7", 4), 2, []string{"0-7"}, []int64{8 * gib}, "nodes 0-1 have the same CPUs 0-7"},
		{"eight", eight().nodes(8, "0-7", 1), 8, []string{"0-7"}, []int64{8 * gib}, "nodes 0-7 have"},
		{"without distances", eight().node(0, "0-7", 1, "").node(5, "0-7", 2, ""), 2, []string{"0-7"},
			[]int64{3 * gib}, "nodes 0,5 have"},
		{"one without memory", eight().node(0, "0-7", 0, "10 10").node(1, "0-7", 2, "10 10"), 2, []string{"0-7"},
			[]int64{2 * gib}, ""},
		{"pairs on two packages", eight().node(0, "0-3", 1, "10 10 20 20").node(1, "0-3", 1, "10 10 20 20").
			node(2, "4-7", 1, "20 20 10 10").node(3, "4-7", 1, "20 20 10 10"), 4, []string{"0-3", "4-7"},
			[]int64{2 * gib, 2 * gib}, "nodes 2-3 have"},
		{"next to memory only", eight().nodes(2, "0-7", 1).node(2, "", 4, "20 20 10"), 3, []string{"0-7"},
			[]int64{2 * gib}, ""},
		{"overlap", eight().node(0, "0-4", 1, "10 20").node(1, "4-7", 1, "20 10"), 2, []string{"0-3", "4-7"},
			[]int64{gib, gib}, "CPUs 4 are in NUMA node 0 and in others"},
		{"overlap of equals", eight().node(0, "0-4", 1, "").node(1, "3-7", 1, ""), 2, []string{"0-4", "5-7"},
			[]int64{gib, gib}, "CPUs 3-4 are in NUMA node 1"},
		{"one inside another", eight().node(0, "0-7", 4, "").node(1, "0-3", 1, ""), 2, []string{"4-7", "0-3"},
			[]int64{4 * gib, gib}, "CPUs 0-3 are in NUMA node 0"},
		{"covered by two", eight().node(0, "0-3", 1, "").node(1, "4-7", 1, "").node(2, "0-7", 4, ""), 3,
			[]string{"0-3", "4-7"}, []int64{gib, gib}, "CPUs 0-7 are in NUMA node 2"},
		{"a CPU in none", eight().nodes(2, "0-6", 1), 2, []string{"0-6"}, []int64{2 * gib},
			"CPUs 7 are in no NUMA node"},
	} {
		m, err := Read(mapRoot(c.files))
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		topotest.CheckSound(t, m, err)
		s := m.Summary()
		if s.PUs != 8 || s.NUMANodes != c.nodes || s.NUMALocalities != len(c.places) {
			t.Errorf("%s: %+v", c.name, s)
		}
		var places []string
		var bytes []int64
		for _, p := range m.Localities() {
			places, bytes = append(places, p.CPUs.String()), append(bytes, p.Bytes)
		}
		if !reflect.DeepEqual(places, c.places) || !reflect.DeepEqual(bytes, c.bytes) {
			t.Errorf("%s: localities %v with %v bytes, want %v with %v", c.name, places, bytes, c.places, c.bytes)
		}
		for _, n := range m.Tree.Level(m.Tree.LevelOf(topotree.KindNUMA)) {
			if !n.Virtual && (n.ID != localityOf(m, n.CPUs).ID || n.Bytes != localityOf(m, n.CPUs).Bytes) {
				t.Errorf("%s: the tree has node %d of %s with %d bytes", c.name, n.ID, n.CPUs, n.Bytes)
			}
		}
		if !hasNote(m, c.note) {
			t.Errorf("%s: notes %q, want %q", c.name, m.Notes, c.note)
		}
	}
}

func localityOf(m *topotree.Machine, pus topotree.CPUSet) topotree.MemoryNode {
	for _, p := range m.Localities() {
		if p.CPUs.Equal(pus) {
			return p
		}
	}
	return topotree.MemoryNode{ID: -1}
}

// TestNoCommonNodeOfEmulated checks that memory is not bound to a node if several nodes have the
// same PUs.
func TestNoCommonNodeOfEmulated(t *testing.T) {
	for n, want := range map[int]int{1: 0, 2: -1, 8: -1} {
		m, err := Read(mapRoot(fixture{}.cores(4, upTo(4)...).online("0-3").nodes(n, "0-3", 1)))
		if err != nil {
			t.Fatal(err)
		}
		if got := m.CommonNode(topotree.CPURange(0, 1)); got != want {
			t.Errorf("%d nodes: memory is bound to node %d, want %d", n, got, want)
		}
	}
}

// TestDamagedNodes reads nodes whose files are cut off or hostile: no PU is lost.
func TestDamagedNodes(t *testing.T) {
	two := func(name, text string) fixture {
		return fixture{}.nodes(2, "0-3", 1).with(fixture{nodeDir + "/" + name: text})
	}
	for name, files := range map[string]fixture{
		"empty list":       fixture{}.nodes(2, "", 1),
		"cut meminfo":      two("node1/meminfo", "Node 1 MemTo"),
		"huge meminfo":     two("node1/meminfo", "MemTotal: 99999999999999999999 kB"),
		"negative memory":  two("node1/meminfo", "MemTotal: -5 kB"),
		"short distances":  two("node1/distance", "10"),
		"long distances":   two("node1/distance", strings.Repeat("10 ", 1<<16)),
		"a number too big": two("node99999999999999999999/cpulist", "0"),
		"a distant number": fixture{}.nodes(2, "0-3", 1).node(1<<30, "0-3", 1, ""),
		"foreign CPUs":     fixture{}.nodes(2, "64-127", 1),
	} {
		m, err := Read(mapRoot(files.cores(4, upTo(4)...).online("0-3")))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		topotest.CheckSound(t, m, err)
		if m.Tree.PUs() != 4 || m.Localities() != nil && m.Localities()[0].Bytes < 0 {
			t.Errorf("%s: %d PUs, localities %+v", name, m.Tree.PUs(), m.Localities())
		}
	}
	if _, err := Read(mapRoot(fixture{}.cores(4, upTo(4)...).nodes(2, "0-x", 1))); err == nil {
		t.Error("a list that is none was read")
	}
}

func memoryOnly(node int, bytes int64, distance int, nearest ...int) topotree.MemoryOnly {
	return topotree.MemoryOnly{Node: node, Bytes: bytes, Nearest: nearest, Distance: distance}
}

// TestMemoryOnly finds the nodes that are nearest to memory without PUs.
func TestMemoryOnly(t *testing.T) {
	two := func(rows ...string) fixture {
		return fixture{}.cores(4, upTo(8)...).online("0-7").node(0, "0-3", 8, rows[0]).node(1, "4-7", 8, rows[1]).
			node(2, "", 64, rows[2])
	}
	initiators := nodeDir + "/node2/access0/initiators/node1/uevent"
	for _, c := range []struct {
		name  string
		files fixture
		want  []topotree.MemoryOnly
		on    int // node of the tree next to which it is drawn, -1 for none
	}{
		{"behind node 1", two("10 20 24", "20 10 14", "24 14 10"), []topotree.MemoryOnly{memoryOnly(2, 64*gib, 14,
			1)}, 1},
		{"behind node 0", two("10 20 14", "20 10 24", "14 24 10"), []topotree.MemoryOnly{memoryOnly(2, 64*gib, 14,
			0)}, 0},
		{"of unequal directions", two("10 20 30", "20 10 17", "11 40 10"),
			[]topotree.MemoryOnly{memoryOnly(2, 64*gib, 17, 1)}, 1},
		{"between both", two("10 20 20", "20 10 20", "20 20 10"), []topotree.MemoryOnly{memoryOnly(2, 64*gib, 20, 0,
			1)}, 0},
		{"between both, with an initiator", two("10 20 20", "20 10 20", "20 20 10").with(fixture{initiators: ""}),
			[]topotree.MemoryOnly{memoryOnly(2, 64*gib, 20, 1)}, 1},
		{"no distances", two("", "", ""), []topotree.MemoryOnly{memoryOnly(2, 64*gib, 0)}, -1},
		{"distances of zero", two("0 0 0", "0 0 0", "0 0 0"), []topotree.MemoryOnly{memoryOnly(2, 64*gib, 0)}, -1},
		{"two behind emulated nodes", fixture{}.cores(4, upTo(4)...).online("0-3").node(0, "0-3", 1, "10 10 17 28").
			node(1, "0-3", 1, "10 10 17 28").node(2, "", 16, "17 17 10 28").node(3, "", 32, "28 28 28 10"),
			[]topotree.MemoryOnly{memoryOnly(2, 16*gib, 17, 0), memoryOnly(3, 32*gib, 28, 0)}, 0},
		{"none", fixture{}.cores(4, upTo(4)...).online("0-3").nodes(1, "0-3", 1), nil, -1},
	} {
		m, err := Read(mapRoot(c.files))
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		topotest.CheckSound(t, m, err)
		if got := m.MemoryOnly(); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
		grouped := m.Tree
		if m.Tree.PUs() == 8 {
			grouped = topotest.Apply(t, m.Tree, "remove(1,4)") // transforms keep it
		}
		for _, tree := range []*topotree.Tree{m.Tree, grouped} {
			at := -1
			for _, n := range tree.Level(tree.LevelOf(topotree.KindNUMA)) {
				if got := tree.MemoryOnly(n); len(got) > 0 {
					at = n.ID
				}
			}
			if at != c.on {
				t.Errorf("%s: drawn next to node %d, want %d", c.name, at, c.on)
			}
		}
	}
}
