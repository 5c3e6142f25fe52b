package topotree

import "fmt"

// A module (AMD family 15h) is two cores that share a front end, an FPU and an L2. Linux calls the
// two thread siblings, as if they were hyperthreads of one core; the first-level caches tell them
// apart. Hyperthreads share both of them; the cores of a module share the instruction cache and
// have a data cache each.

// family15h is AMD's family of modules as /proc/cpuinfo spells it.
const family15h = "21"

// addModule adds each of the siblings as a core, and the module as a cluster unless the kernel
// names one: the node to group and remove by where no L2 of the same PUs makes it redundant.
func (r *sysfs) addModule(sets *cpuSets, siblings CPUSet) {
	for p := range siblings.All() {
		sets.add(Object{Kind: KindCore, ID: r.coreID(p), CPUs: NewCPUSet(p)})
	}
	if !sets.has(KindCluster, siblings.First()) {
		sets.add(Object{Kind: KindCluster, ID: -1, CPUs: siblings})
	}
}

// isModule reports whether thread siblings are cores. Where cache maps are missing, or show no
// first-level cache as shared (hypervisors and old kernels do so for hyperthreads, too), they are
// cores only if the CPU is of the family that has modules and the kernel numbers them as cores
// in addition to calling them siblings.
func (r *sysfs) isModule(siblings CPUSet) bool {
	if siblings.Count() < 2 {
		return false
	}
	data := r.firstLevel("Data", siblings)
	if data == l1Shared {
		return false
	}
	if data == l1Own && r.firstLevel("Instruction", siblings) == l1Shared {
		return true
	}
	return r.modular && r.distinctCoreIDs(siblings)
}

// l1Sharing is what the cache maps say about a first-level cache of thread siblings.
type l1Sharing int

const (
	l1Unknown l1Sharing = iota // not said of every sibling
	l1Own                      // each has one to itself
	l1Shared                   // at least two have one in common
)

func (r *sysfs) firstLevel(kind string, siblings CPUSet) l1Sharing {
	sharing := l1Own
	for p := range siblings.All() {
		sharers := r.firstLevelOf(p, kind).Intersect(siblings)
		if !sharers.Contains(p) {
			sharing = l1Unknown
		} else if sharers.Count() > 1 {
			return l1Shared
		}
	}
	return sharing
}

// firstLevelOf returns the PUs that share the first-level cache of a PU; none where the system does
// not say.
func (r *sysfs) firstLevelOf(p int, kind string) CPUSet {
	dir := fmt.Sprintf("%s/cpu%d/cache", cpuDir, p)
	for _, index := range r.numbered(dir, "index") {
		at := fmt.Sprintf("%s/index%d", dir, index)
		got := r.text(at + "/type")
		if r.number(at+"/level", 0) != 1 || got != kind && got != "Unified" {
			continue
		}
		if sharers, err := r.sharers(at, p); err == nil {
			return sharers
		}
	}
	return CPUSet{}
}

func (r *sysfs) distinctCoreIDs(siblings CPUSet) bool {
	seen := map[int]bool{-1: true}
	for p := range siblings.All() {
		id := r.coreID(p)
		if seen[id] {
			return false
		}
		seen[id] = true
	}
	return true
}

// coreID returns the kernel's number of a PU's core, -1 where it has none.
func (r *sysfs) coreID(p int) int {
	return max(r.number(fmt.Sprintf("%s/cpu%d/topology/core_id", cpuDir, p), -1), -1)
}
