package sysfs

import (
	"fmt"
	"strings"

	"sandwich/topotree"
)

// cpuSets collects the sets of each kind and the PUs that they cover, so that files of a PU are not
// read again after a sibling has described it.
type cpuSets struct {
	objects []topotree.Object
	covered map[topotree.Kind]topotree.CPUSet
}

func (s *cpuSets) add(o topotree.Object) {
	s.objects = append(s.objects, o)
	s.covered[o.Kind] = s.covered[o.Kind].Union(o.CPUs)
}

func (s *cpuSets) has(kind topotree.Kind, c int) bool { return s.covered[kind].Contains(c) }

// readCPUs reads the topology and cache folders of all online PUs.
func (r *reader) readCPUs() error {
	sets := &cpuSets{covered: map[topotree.Kind]topotree.CPUSet{}}
	bare := 0
	for c := range r.m.Online.All() {
		dir := fmt.Sprintf("%s/cpu%d", cpuDir, c)
		if !r.exists(dir + "/topology") {
			bare++
			sets.add(topotree.Object{Kind: topotree.KindCore, ID: c, CPUs: topotree.NewCPUSet(c)})
		} else if err := r.readTopology(sets, c, dir+"/topology"); err != nil {
			return err
		}
		if err := r.readCaches(sets, c, dir+"/cache"); err != nil {
			return err
		}
	}
	if sets.covered[topotree.KindPackage].IsEmpty() {
		sets.add(topotree.Object{Kind: topotree.KindPackage, ID: -1, CPUs: r.m.Online})
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
	kind    topotree.Kind
	id      string
	files   []string
	mayLack bool // unreliable in firmware: ids below 0 and sets of one CPU are ignored
}

var topologyFiles = []topologyFile{
	{topotree.KindPackage, "physical_package_id", []string{"package_cpus_list", "core_siblings_list", "package_cpus",
		"core_siblings"}, false},
	{topotree.KindDie, "die_id", []string{"die_cpus_list", "die_cpus"}, true},
	{topotree.KindGroup, "book_id", []string{"book_siblings_list", "book_siblings"}, true}, // s390
	{topotree.KindCluster, "cluster_id", []string{"cluster_cpus_list", "cluster_cpus"}, true},
	{topotree.KindCore, "core_id", []string{"core_cpus_list", "thread_siblings_list", "core_cpus", "thread_siblings"},
		false},
}

func (r *reader) readTopology(sets *cpuSets, c int, dir string) error {
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
		if f.kind == topotree.KindCore && r.isModule(set) {
			r.addModule(sets, set)
			continue
		}
		sets.add(topotree.Object{Kind: f.kind, ID: max(id, -1), CPUs: set})
	}
	return nil
}

// withSelf limits a sharing set to online PUs. A set without its own PU, as in all-zero masks of
// old kernels, means this PU only.
func (r *reader) withSelf(set topotree.CPUSet, c int) topotree.CPUSet {
	if !set.Contains(c) {
		return topotree.NewCPUSet(c)
	}
	return set.Intersect(r.m.Online)
}

func (r *reader) readCaches(sets *cpuSets, c int, dir string) error {
	for _, index := range r.numbered(dir, "index") {
		at := fmt.Sprintf("%s/index%d", dir, index)
		kind, ok := topotree.CacheKind(r.number(at+"/level", 0))
		if !ok || sets.has(kind, c) || strings.HasPrefix(r.text(at+"/type"), "Instruction") {
			continue
		}
		set, err := r.sharers(at, c)
		if err != nil {
			return err
		}
		sets.add(topotree.Object{
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
func (r *reader) sharers(at string, c int) (topotree.CPUSet, error) {
	list, err := r.set(at, "shared_cpu_list")
	if err != nil {
		return topotree.CPUSet{}, err
	}
	mask, err := r.set(at, "shared_cpu_map")
	if err != nil && list.IsEmpty() {
		return topotree.CPUSet{}, err
	}
	list, mask = list.Intersect(r.m.Online), mask.Intersect(r.m.Online)
	if !list.Contains(c) || mask.Contains(c) && mask.Count() > list.Count() {
		return mask, nil
	}
	return list, nil
}
