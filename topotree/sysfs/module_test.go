package sysfs

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"sandwich/topotree"
	"sandwich/topotree/hwloc"
	"sandwich/topotree/internal/topotest"
	"sandwich/topotree/section"
)

// opteron describes four Opteron 6276 as Linux does: 4 packages of 2 nodes of 4 modules of 2 cores.
// The cores of a module are thread siblings with core numbers and L1 data caches of their own.
func opteron() map[string]string {
	files := map[string]string{
		cpuDir + "/online": "0-63",
		"proc/cpuinfo":     "vendor_id : AuthenticAMD\ncpu family : 21\nsiblings : 16\ncpu cores : 8\nflags : lm\n",
	}
	for node := range 8 {
		files[fmt.Sprintf("%s/node%d/cpulist", nodeDir, node)] = block(node, 8)
	}
	for c := range 64 {
		topology := fmt.Sprintf("%s/cpu%d/topology/", cpuDir, c)
		files[topology+"physical_package_id"] = fmt.Sprint(c / 16)
		files[topology+"core_siblings_list"] = block(c/16, 16)
		files[topology+"core_id"] = fmt.Sprint(c % 8)
		files[topology+"thread_siblings_list"] = block(c/2, 2)
		for i, cache := range []struct{ level, kind, size, shared string }{
			{"1", "Data", "16K", fmt.Sprint(c)},
			{"1", "Instruction", "64K", block(c/2, 2)},
			{"2", "Unified", "2048K", block(c/2, 2)},
			{"3", "Unified", "6144K", block(c/8, 8)},
		} {
			at := fmt.Sprintf("%s/cpu%d/cache/index%d/", cpuDir, c, i)
			files[at+"level"], files[at+"type"] = cache.level, cache.kind
			files[at+"size"], files[at+"shared_cpu_list"] = cache.size, cache.shared
		}
	}
	return files
}

// block lists the n-th run of size PUs.
func block(n, size int) string { return topotree.CPURange(n*size, n*size+size-1).String() }

// rewrite changes one file of every PU; "" removes it.
func rewrite(name string, text func(c int) string) func(map[string]string) {
	return func(files map[string]string) {
		for c := range 64 {
			path := fmt.Sprintf("%s/cpu%d/%s", cpuDir, c, name)
			delete(files, path)
			if t := text(c); t != "" {
				files[path] = t
			}
		}
	}
}

func alone(c int) string { return fmt.Sprint(c) }
func pair(c int) string  { return block(c/2, 2) }

// anothers lists four PUs, none of them c.
func anothers(c int) string { return block((c/4+8)%16, 4) }

func pairMask(c int) string {
	mask := uint64(3) << (c &^ 1)
	return fmt.Sprintf("%08x,%08x", mask>>32, uint32(mask))
}

func noCaches(files map[string]string) {
	maps.DeleteFunc(files, func(path, _ string) bool { return strings.Contains(path, "/cache/") })
}

func family(vendor string, number int) func(map[string]string) {
	return func(files map[string]string) {
		files["proc/cpuinfo"] = fmt.Sprintf("vendor_id : %s\ncpu family : %d\nflags : lm\n", vendor, number)
	}
}

// TestModules reads thread siblings as cores or as hyperthreads, by what else the system says about
// them.
func TestModules(t *testing.T) {
	const l1d, l1i, l2 = "cache/index0/shared_cpu_list", "cache/index1/shared_cpu_list", "cache/index2/shared_cpu_list"
	const mapOf1i, mapOfL2 = "cache/index1/shared_cpu_map", "cache/index2/shared_cpu_map"
	sameID := rewrite("topology/core_id", func(c int) string { return fmt.Sprint(c / 2 % 4) })
	type edits []func(map[string]string)
	for _, c := range []struct {
		name                string
		edit                edits
		cores, clusters, l2 int
	}{
		{"as it is", nil, 64, 0, 32},
		{"of an unknown vendor", edits{family("Unknown", 6)}, 64, 0, 32},
		{"lists that name the own PU alone", edits{rewrite(l1i, alone), rewrite(l2, alone), rewrite(mapOf1i, pairMask),
			rewrite(mapOfL2, pairMask), family("Unknown", 6)}, 64, 0, 32},
		{"lists of another PU", edits{rewrite(l1i, anothers), rewrite(l2, anothers), rewrite(mapOf1i, pairMask),
			rewrite(mapOfL2, pairMask), family("Unknown", 6)}, 64, 0, 32},
		{"old kernel, nothing shared", edits{rewrite(l1i, alone), rewrite(l2, alone)}, 64, 32, 64},
		{"no caches", edits{noCaches}, 64, 32, 0},
		{"no caches, one core number", edits{noCaches, sameID}, 32, 0, 0},
		{"no caches, no core number", edits{noCaches, rewrite("topology/core_id", func(int) string { return "" })}, 32,
			0, 0},
		{"no caches, another family", edits{noCaches, family("AuthenticAMD", 23)}, 32, 0, 0},
		{"hyperthreads with numbers of their own", edits{rewrite(l1d, pair), family("AuthenticAMD", 23)}, 32, 0, 32},
		{"hyperthreads of a guest of this family", edits{rewrite(l1d, pair)}, 32, 0, 32},
		{"guest that invents caches", edits{rewrite(l1i, alone), sameID, family("GenuineIntel", 6)}, 32, 0, 32},
		{"guest that invents caches and core numbers", edits{rewrite(l1i, alone), family("GenuineIntel", 6)}, 32, 0,
			32},
	} {
		files := opteron()
		for _, edit := range c.edit {
			edit(files)
		}
		m, err := Read(mapRoot(files))
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		s := m.Summary()
		got := [4]int{s.PUs, s.Cores, s.Clusters, s.L2}
		if want := [4]int{64, c.cores, c.clusters, c.l2}; got != want {
			t.Errorf("%s: PUs, cores, clusters, L2 = %v, want %v", c.name, got, want)
		}
		if err := m.Tree.Check(); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// TestModuleTree compares the tree of modules with hwloc's description, and removes one core of
// each module.
func TestModuleTree(t *testing.T) {
	m, err := Read(mapRoot(opteron()))
	if err != nil {
		t.Fatal(err)
	}
	x, err := hwloc.ReadXML(strings.NewReader(opteronXML()))
	if err != nil {
		t.Fatal(err)
	}
	if m.Tree.Digest() != x.Tree.Digest() {
		t.Errorf("sysfs gives digest %s, XML %s", m.Tree.Digest(), x.Tree.Digest())
	}
	l2 := m.Tree.LevelOf(topotree.KindL2)
	cut := section.Of(topotest.Apply(t, m.Tree, fmt.Sprintf("remove(1,%d)", l2+1)))[l2]
	if cut.TP != 32 || cut.PrefillPUs().Count() != 64 || cut.DecodePUs().Count() != 32 || !cut.Even {
		t.Errorf("one core of each module: %d ranks, %d and %d PUs",
			cut.TP, cut.PrefillPUs().Count(), cut.DecodePUs().Count())
	}
}

// opteronXML is the same machine as hwloc exports it.
func opteronXML() string {
	var b strings.Builder
	object := func(kind string, index, size int, more string) {
		var words [2]uint32
		for c := index * size; c < (index+1)*size; c++ {
			words[c/32] |= 1 << (c % 32)
		}
		fmt.Fprintf(&b, `<object type="%s" os_index="%d" cpuset="0x%08x,0x%08x" %s`, kind, index, words[1],
			words[0], more)
	}
	b.WriteString(`<topology version="3.0">`)
	object("Machine", 0, 64, ">")
	for c := range 64 {
		if c%16 == 0 {
			object("Package", c/16, 16, ">")
		}
		if c%8 == 0 {
			object("L3Cache", c/8, 8, `cache_size="6291456">`)
			object("NUMANode", c/8, 8, "/>")
		}
		if c%2 == 0 {
			object("L2Cache", c/2, 2, `cache_size="2097152">`)
			object("L1iCache", c/2, 2, ">")
		}
		object("Core", c, 1, ">")
		object("PU", c, 1, "/>")
		b.WriteString("</object>")
		for _, size := range []int{2, 2, 8, 16, 64} {
			if (c+1)%size == 0 {
				b.WriteString("</object>")
			}
		}
	}
	return b.String() + "</topology>"
}
