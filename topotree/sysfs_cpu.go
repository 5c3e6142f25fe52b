package topotree

import (
	"fmt"
	"strings"
)

// cpuSets collects the sets of each kind and the PUs that they cover, so that files of a PU are not
// read again after a sibling has described it.
type cpuSets struct {
	objects []Object
	covered map[Kind]CPUSet
}

func (s *cpuSets) add(o Object) {
	s.objects = append(s.objects, o)
	s.covered[o.Kind] = s.covered[o.Kind].Union(o.CPUs)
}

func (s *cpuSets) has(kind Kind, c int) bool { return s.covered[kind].Contains(c) }

// readCPUs reads the topology and cache folders of all online PUs.
func (r *sysfs) readCPUs() error {
	sets := &cpuSets{covered: map[Kind]CPUSet{}}
	bare := 0
	for c := range r.m.Online.All() {
		dir := fmt.Sprintf("%s/cpu%d", cpuDir, c)
		if !r.exists(dir + "/topology") {
			bare++
			sets.add(Object{Kind: KindCore, ID: c, CPUs: NewCPUSet(c)})
		} else if err := r.readTopology(sets, c, dir+"/topology"); err != nil {
			return err
		}
		if err := r.readCaches(sets, c, dir+"/cache"); err != nil {
			return err
		}
	}
	if sets.covered[KindPackage].IsEmpty() {
		sets.add(Object{Kind: KindPackage, ID: -1, CPUs: r.m.Online})
	}
	if bare > 0 {
		r.m.Notes = append(r.m.Notes, fmt.Sprintf("the kernel describes no topology for %d of %d CPUs: each of "+
			"these counts as a core", bare, r.m.Online.Count()))
	}
	r.m.Objects = sets.objects
	return nil
}

// topologyFile describes a sharing set in a PU's topology folder. File names depend on the kernel
// version; lists come first.
type topologyFile struct {
	kind    Kind
	id      string
	files   []string
	mayLack bool // unreliable in firmware: ids below 0 and sets of one CPU are ignored
}

var topologyFiles = []topologyFile{
	{KindPackage, "physical_package_id", []string{"package_cpus_list", "core_siblings_list", "package_cpus",
		"core_siblings"}, false},
	{KindDie, "die_id", []string{"die_cpus_list", "die_cpus"}, true},
	{KindGroup, "book_id", []string{"book_siblings_list", "book_siblings"}, true}, // s390
	{KindCluster, "cluster_id", []string{"cluster_cpus_list", "cluster_cpus"}, true},
	{KindCore, "core_id", []string{"core_cpus_list", "thread_siblings_list", "core_cpus", "thread_siblings"}, false},
}

func (r *sysfs) readTopology(sets *cpuSets, c int, dir string) error {
	for _, f := range topologyFiles {
		if sets.has(f.kind, c) {
			continue
		}
		set, err := r.set(dir, f.files...)
		if err != nil {
			return err
		}
		id := r.number(dir+"/"+f.id, -1)
		if f.mayLack && (id < 0 || set.IsEmpty()) {
			continue
		}
		set = r.withSelf(set, c)
		if f.kind == KindCore && r.isModule(set) {
			r.addModule(sets, set)
			continue
		}
		sets.add(Object{Kind: f.kind, ID: max(id, -1), CPUs: set})
	}
	return nil
}

// withSelf limits a sharing set to online PUs. A set without its own PU, as in all-zero masks of
// old kernels, means this PU only.
func (r *sysfs) withSelf(set CPUSet, c int) CPUSet {
	if !set.Contains(c) {
		return NewCPUSet(c)
	}
	return set.Intersect(r.m.Online)
}

func (r *sysfs) readCaches(sets *cpuSets, c int, dir string) error {
	for _, index := range r.numbered(dir, "index") {
		at := fmt.Sprintf("%s/index%d", dir, index)
		kind, ok := cacheKind(r.number(at+"/level", 0))
		if !ok || sets.has(kind, c) || strings.HasPrefix(r.text(at+"/type"), "Instruction") {
			continue
		}
		set, err := r.sharers(at, c)
		if err != nil {
			return err
		}
		sets.add(Object{
			Kind: kind, ID: r.number(at+"/id", -1),
			CPUs:  r.withSelf(set, c),
			Bytes: sizeBytes(r.text(at + "/size")),
		})
	}
	return nil
}

// sharers returns the online PUs that share a cache of PU c. List and mask should be equal. If a
// saved copy has distinct ones, a set without c is ignored; otherwise the larger set is used, since
// some dumps list c only.
func (r *sysfs) sharers(at string, c int) (CPUSet, error) {
	list, err := r.set(at, "shared_cpu_list")
	if err != nil {
		return CPUSet{}, err
	}
	mask, err := r.set(at, "shared_cpu_map")
	if err != nil && list.IsEmpty() {
		return CPUSet{}, err
	}
	list, mask = list.Intersect(r.m.Online), mask.Intersect(r.m.Online)
	if !list.Contains(c) || mask.Contains(c) && mask.Count() > list.Count() {
		return mask, nil
	}
	return list, nil
}

// cacheKind maps a cache level to a kind. L1 caches belong to a core and form no tree level.
func cacheKind(level int) (Kind, bool) {
	switch level {
	case 2:
		return KindL2, true
	case 3:
		return KindL3, true
	case 4:
		return KindL4, true
	}
	return 0, false
}
