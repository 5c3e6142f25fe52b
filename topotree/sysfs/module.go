package sysfs

import (
	"fmt"

	"sandwich/topotree"
)

// A module (AMD family 15h) is two cores that share a front end, an FPU and an L2. Linux reports
// the two cores as thread siblings, like hyperthreads of one core. The L1 caches distinguish the
// two cases: hyperthreads share both, the cores of a module share the instruction cache and have
// separate data caches.

// family15h is AMD's family of modules as written in /proc/cpuinfo.
const family15h = "21"

// addModule adds each sibling as a core, and the module as a cluster unless the kernel has one. The
// cluster is redundant if an L2 has the same PUs.
func (r *reader) addModule(sets *cpuSets, siblings topotree.CPUSet) {
	for p := range siblings.All() {
		sets.add(topotree.Object{Kind: topotree.KindCore, ID: r.coreID(p), CPUs: topotree.NewCPUSet(p)})
	}
	if !sets.has(topotree.KindCluster, siblings.First()) {
		sets.add(topotree.Object{Kind: topotree.KindCluster, ID: -1, CPUs: siblings})
	}
}

// isModule reports whether thread siblings are cores. If cache maps are missing or show no shared
// L1 cache, as some hypervisors and old kernels do for hyperthreads, the siblings are cores only if
// the CPU family has modules and the kernel gives them distinct core IDs.
func (r *reader) isModule(siblings topotree.CPUSet) bool {
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

// l1Sharing is the sharing of an L1 cache among thread siblings according to cache maps.
type l1Sharing int

const (
	l1Unknown l1Sharing = iota // not known for all siblings
	l1Own                      // each has its own
	l1Shared                   // at least two share one
)

func (r *reader) firstLevel(kind string, siblings topotree.CPUSet) l1Sharing {
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

// firstLevelOf returns the PUs that share the L1 cache of a PU, empty if unknown.
func (r *reader) firstLevelOf(p int, kind string) topotree.CPUSet {
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
	return topotree.CPUSet{}
}

func (r *reader) distinctCoreIDs(siblings topotree.CPUSet) bool {
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

// coreID returns the kernel's core ID of a PU, -1 if unknown.
func (r *reader) coreID(p int) int {
	return max(r.number(fmt.Sprintf("%s/cpu%d/topology/core_id", cpuDir, p), -1), -1)
}
