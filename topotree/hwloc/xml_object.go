package hwloc

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"sandwich/internal/message"
	"sandwich/topotree"
)

// objectNames maps the type of an object to a kind. Other types (I/O devices, Misc, L1 caches) are
// not part of the tree.
var objectNames = map[string]topotree.Kind{
	"Package": topotree.KindPackage, "Socket": topotree.KindPackage, "Die": topotree.KindDie,
	"Group": topotree.KindGroup, "Core": topotree.KindCore,
	"L2Cache": topotree.KindL2, "L3Cache": topotree.KindL3, "L4Cache": topotree.KindL4,
}

func (x *xmlReader) openObject(a attrs) error {
	if x.objects++; x.objects > maxXMLObjects {
		return fmt.Errorf("more than %d objects", maxXMLObjects)
	}
	kind := a.get("type")
	if kind == "Node" {
		kind = "NUMANode"
	}
	top := &x.stack[len(x.stack)-1]
	top.kind = kind
	switch kind {
	case "Machine", "System":
		return x.openMachine(a)
	case "PU":
		return x.openPU(a)
	case "MemCache":
		top.caches = append(slices.Clone(x.memCaches()), topotree.MemoryCache{Level: int(a.number("depth", 1)),
			Bytes: a.number("cache_size", 0)})
		return nil
	case "NUMANode":
		return x.openNode(a)
	}
	o := topotree.Object{ID: int(a.number("os_index", -1)), Bytes: a.number("cache_size", 0)}
	known := false
	switch {
	case kind == "Cache": // 1.x; cache_type 2 is an instruction cache
		o.Kind, known = topotree.CacheKind(int(a.number("depth", 0)))
		known = known && a.get("cache_type") != "2"
	case kind == "Group" && a.get("subtype") == "Cluster":
		o.Kind, known = topotree.KindCluster, true
	default:
		o.Kind, known = objectNames[kind]
	}
	if !known {
		return nil
	}
	set, err := x.cpuset(a, "cpuset")
	if err != nil {
		return fmt.Errorf("%s: %w", kind, err)
	}
	if len(x.m.Objects) >= maxXMLSets {
		return fmt.Errorf("more than %d packages, caches and cores", maxXMLSets)
	}
	o.CPUs = set
	x.m.Objects = append(x.m.Objects, o)
	x.inGroup = o.Kind == topotree.KindGroup
	return nil
}

// cpuset returns a set without the PUs that format 1.x marks as offline.
func (x *xmlReader) cpuset(a attrs, name string) (topotree.CPUSet, error) {
	set, err := topotree.ParseCPUMask(a.get(name))
	if err != nil {
		return topotree.CPUSet{}, err
	}
	if online := a.get("online_cpuset"); online != "" {
		on, err := topotree.ParseCPUMask(online)
		if err != nil {
			return topotree.CPUSet{}, err
		}
		set = set.Intersect(on)
	}
	return set, nil
}

func (x *xmlReader) openMachine(a attrs) error {
	var err error
	if x.m.Online, err = x.cpuset(a, "cpuset"); err != nil {
		return fmt.Errorf("machine: %w", err)
	}
	complete, err := topotree.ParseCPUMask(a.get("complete_cpuset"))
	if err != nil {
		return fmt.Errorf("machine: %w", err)
	}
	x.m.Offline = complete.Minus(x.m.Online)
	if x.allowed, err = topotree.ParseCPUMask(a.get("allowed_cpuset")); err != nil {
		return fmt.Errorf("machine: %w", err)
	}
	return nil
}

func (x *xmlReader) openPU(a attrs) error {
	n := a.number("os_index", -1)
	if n < 0 || n >= topotree.MaxPUs {
		return fmt.Errorf("PU number %q is not in 0 to %d", message.Clip(a.get("os_index"), 60), topotree.MaxPUs-1)
	}
	set, err := topotree.ParseCPUMask(a.get("cpuset"))
	if err != nil {
		return fmt.Errorf("PU %d: %w", n, err)
	}
	if !set.IsEmpty() && !set.Equal(topotree.NewCPUSet(int(n))) {
		return fmt.Errorf("PU %d has the CPU set %s: the description is inconsistent", n, set)
	}
	if len(x.puList) >= topotree.MaxPUs {
		return fmt.Errorf("more than %d PUs", topotree.MaxPUs)
	}
	x.puList = append(x.puList, int(n))
	return nil
}

// memCaches returns the memory-side caches of the innermost object that has any.
func (x *xmlReader) memCaches() []topotree.MemoryCache {
	for _, e := range slices.Backward(x.stack) {
		if e.caches != nil {
			return e.caches
		}
	}
	return nil
}

func (x *xmlReader) openNode(a attrs) error {
	set, err := x.cpuset(a, "cpuset")
	if err != nil {
		return fmt.Errorf("NUMANode: %w", err)
	}
	if len(x.m.Memory) >= topotree.MaxMemoryNodes {
		return fmt.Errorf("more than %d NUMA nodes", topotree.MaxMemoryNodes)
	}
	x.m.Memory = append(x.m.Memory, topotree.MemoryNode{
		ID: int(a.number("os_index", int64(len(x.m.Memory)))), CPUs: set, Bytes: a.number("local_memory", 0),
		Device: a.get("subtype") == "GPUMemory", Caches: x.memCaches(),
	})
	x.inNode = true
	return nil
}

// complete derives what the document only implies, before the common checks.
func (x *xmlReader) complete() error {
	m := x.m
	x.pus = topotree.NewCPUSet(x.puList...)
	if x.pus.Count() != len(x.puList) {
		return fmt.Errorf("a PU number occurs twice: the description is inconsistent")
	}
	if x.pus.IsEmpty() {
		return fmt.Errorf("the topology has no PU: export it again without filtering types")
	}
	if m.Online.IsEmpty() {
		m.Online = x.pus
	}
	m.Online = m.Online.Intersect(x.pus)
	m.Allowed = m.Online
	if x.allowed.Intersects(m.Online) {
		m.Allowed = m.Online.Intersect(x.allowed)
	}
	if len(m.Memory) == 0 {
		m.Notes = append(m.Notes, "the description names no NUMA node: all CPUs count as one")
		m.Memory = []topotree.MemoryNode{{ID: 0, CPUs: m.Online}}
	}
	bindDistances(m)
	m.Objects = innermostGroups(m.Objects)
	m.CoreTypes = rankCoreTypes(x.coreTypes, m.Online)
	return nil
}

// innermostGroups keeps, among groups that nest (books in drawers, groups by distance), the
// innermost: a tree has one level of fundamental groups.
func innermostGroups(objects []topotree.Object) []topotree.Object {
	groups := slices.DeleteFunc(slices.Clone(objects),
		func(o topotree.Object) bool { return o.Kind != topotree.KindGroup })
	slices.SortStableFunc(groups, func(a, b topotree.Object) int { return a.CPUs.Count() - b.CPUs.Count() })
	var covered topotree.CPUSet
	drop := map[string]bool{}
	for _, g := range groups {
		if g.CPUs.Intersects(covered) {
			drop[g.CPUs.Key()] = true
		} else {
			covered = covered.Union(g.CPUs)
		}
	}
	for _, g := range groups {
		if !drop[g.CPUs.Key()] {
			continue
		}
		for _, kept := range groups { // an equal set said twice stays
			if kept.CPUs.Equal(g.CPUs) && !drop[kept.CPUs.Key()] {
				delete(drop, g.CPUs.Key())
			}
		}
	}
	return slices.DeleteFunc(objects, func(o topotree.Object) bool {
		return o.Kind == topotree.KindGroup &&
			drop[o.CPUs.Key()]
	})
}

// xmlCoreType is one cpukind element.
type xmlCoreType struct {
	topotree.CoreType
	efficiency int
}

func (x *xmlReader) openKind(a attrs) error {
	set, err := topotree.ParseCPUMask(a.get("cpuset"))
	if err != nil {
		return fmt.Errorf("cpukind: %w", err)
	}
	if len(x.coreTypes) >= 64 {
		return fmt.Errorf("more than 64 kinds of cores")
	}
	x.coreTypes = append(x.coreTypes, xmlCoreType{topotree.CoreType{CPUs: set}, int(a.number("forced_efficiency", -1))})
	return nil
}

func (k *xmlCoreType) info(name, value string) {
	n, _ := strconv.Atoi(value)
	switch name {
	case "FrequencyMaxMHz":
		k.MaxMHz = n
	case "FrequencyBaseMHz":
		k.BaseMHz = n
	case "LinuxCapacity":
		k.Capacity = n
	case "CoreType":
		k.Name = strings.TrimPrefix(value, "Intel")
	}
}

// rankCoreTypes orders the kinds from the fastest and names them as the Linux reader does. Fewer
// than two kinds with PUs mean that all cores are alike.
func rankCoreTypes(kinds []xmlCoreType, online topotree.CPUSet) []topotree.CoreType {
	kinds = slices.DeleteFunc(slices.Clone(kinds), func(k xmlCoreType) bool { return !k.CPUs.Intersects(online) })
	if len(kinds) < 2 {
		return nil
	}
	slices.SortStableFunc(kinds, func(a, b xmlCoreType) int {
		return cmp.Or(cmp.Compare(b.efficiency, a.efficiency), cmp.Compare(b.Capacity, a.Capacity),
			cmp.Compare(b.BaseMHz, a.BaseMHz), cmp.Compare(b.MaxMHz, a.MaxMHz))
	})
	var out []topotree.CoreType
	for i, k := range kinds {
		k.Name = fmt.Sprintf("type %d", i)
		if len(kinds) == 2 {
			k.Name = []string{"P", "E"}[i]
		}
		k.CPUs = k.CPUs.Intersect(online)
		out = append(out, k.CoreType)
	}
	return out
}
