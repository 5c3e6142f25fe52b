package sysfs

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"sandwich/topotree"
)

// readNodes reads the NUMA nodes with their memory, caches, HMAT access classes and distances. A
// machine without node folders has one implicit node.
func (r *reader) readNodes() error {
	ids := r.numbered(nodeDir, "node")
	slices.Sort(ids)
	if len(ids) > topotree.MaxMemoryNodes {
		return fmt.Errorf("%s has %d nodes, above the limit of %d", nodeDir, len(ids), topotree.MaxMemoryNodes)
	}
	if len(ids) == 0 {
		r.note("the kernel describes no NUMA node: all CPUs count as one node")
		r.m.Memory = []topotree.MemoryNode{{ID: 0, CPUs: r.m.Online, Bytes: r.memTotal("proc/meminfo")}}
		return nil
	}
	devices := r.deviceNodes()
	var covered topotree.CPUSet
	for _, id := range ids {
		dir := fmt.Sprintf("%s/node%d", nodeDir, id)
		set, err := r.set(dir, "cpulist", "cpumap")
		if err != nil {
			return err
		}
		set = set.Intersect(r.m.Online)
		covered = covered.Union(set)
		r.m.Memory = append(r.m.Memory, topotree.MemoryNode{
			ID: id, CPUs: set, Bytes: r.memTotal(dir + "/meminfo"), Device: set.IsEmpty() && devices[id],
			Caches: r.memoryCaches(dir), Access: r.memoryAccess(dir),
		})
	}
	if homeless := r.m.Online.Minus(covered); !homeless.IsEmpty() {
		r.note("CPUs %s are in no NUMA node", homeless)
	}
	r.separateNodes()
	if len(r.m.Memory) == 1 {
		r.giveAllMemory(&r.m.Memory[0])
	}
	r.readDistances(ids)
	return nil
}

// separateNodes makes the CPU sets of any two nodes equal or disjoint. Nodes with the same CPUs, as
// in NUMA emulation, stay one locality. CPUs in several distinct sets stay in the smallest one, and
// of equally large ones in that with the lowest index.
func (r *reader) separateNodes() {
	places := r.m.Localities()
	for _, p := range places {
		if nodes := r.m.NodesOn(p.CPUs); len(nodes) > 1 {
			r.note("NUMA nodes %s have the same CPUs %s: they count as one with the memory of all",
				topotree.NewCPUSet(nodes...), p.CPUs.Brief())
		}
	}
	slices.SortStableFunc(places, func(a, b topotree.MemoryNode) int { return a.CPUs.Count() - b.CPUs.Count() })
	cut := map[string]topotree.CPUSet{}
	var covered topotree.CPUSet
	for _, p := range places {
		if both := p.CPUs.Intersect(covered); !both.IsEmpty() {
			r.note("CPUs %s are in NUMA node %d and in others with different CPUs: they count for the node with the "+
				"fewest", both.Brief(), p.ID)
			cut[p.CPUs.Key()] = p.CPUs.Minus(covered)
		}
		covered = covered.Union(p.CPUs)
	}
	for i := range r.m.Memory {
		if rest, ok := cut[r.m.Memory[i].CPUs.Key()]; ok {
			r.m.Memory[i].CPUs = rest
		}
	}
}

// giveAllMemory assigns all memory of the kernel to the only node. In guests with hot-plugged
// memory (seen with Firecracker) the node's file counts only the memory at boot.
func (r *reader) giveAllMemory(only *topotree.MemoryNode) {
	all := r.memTotal("proc/meminfo")
	if all <= only.Bytes {
		return
	}
	if only.Bytes > 0 {
		r.note("node %d is the only node, but counts %.1f of the %.1f GiB of the kernel: it gets all of them",
			only.ID, float64(only.Bytes)/(1<<30), float64(all)/(1<<30))
	}
	only.Bytes = all
}

// memTotal returns the value of "MemTotal: N kB" in a meminfo file in bytes, 0 if missing.
func (r *reader) memTotal(path string) int64 {
	for line := range strings.SplitSeq(r.text(path), "\n") {
		_, after, ok := strings.Cut(line, "MemTotal:")
		if !ok {
			continue
		}
		kb, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(after), "kB")), 10, 64)
		if err != nil || kb < 0 || kb > 1<<52 {
			return 0
		}
		return kb << 10
	}
	return 0
}

// deviceNodes returns the nodes that are memory of a GPU according to its driver.
func (r *reader) deviceNodes() map[int]bool {
	const dir = "proc/driver/nvidia/gpus"
	out := map[int]bool{}
	for _, gpu := range r.names(dir) {
		for line := range strings.SplitSeq(r.text(dir+"/"+gpu+"/numa_status"), "\n") {
			if after, ok := strings.CutPrefix(line, "Node:"); ok {
				if id, err := strconv.Atoi(strings.TrimSpace(after)); err == nil {
					out[id] = true
				}
			}
		}
	}
	return out
}

func (r *reader) memoryCaches(dir string) []topotree.MemoryCache {
	var out []topotree.MemoryCache
	for _, level := range r.numbered(dir+"/memory_side_cache", "index") {
		size, err := strconv.ParseInt(r.text(fmt.Sprintf("%s/memory_side_cache/index%d/size", dir, level)), 10, 64)
		if err != nil || size < 0 {
			size = 0
		}
		out = append(out, topotree.MemoryCache{Level: level, Bytes: size})
	}
	slices.SortFunc(out, func(a, b topotree.MemoryCache) int { return a.Level - b.Level })
	return out
}

func (r *reader) memoryAccess(dir string) []topotree.MemoryAccess {
	var out []topotree.MemoryAccess
	classes := r.numbered(dir, "access")
	slices.Sort(classes)
	for _, class := range classes {
		at := fmt.Sprintf("%s/access%d/initiators", dir, class)
		a := topotree.MemoryAccess{
			Class: class, Initiators: r.numbered(at, "node"),
			ReadMBps: r.number(at+"/read_bandwidth", 0), WriteMBps: r.number(at+"/write_bandwidth", 0),
			ReadNs: r.number(at+"/read_latency", 0), WriteNs: r.number(at+"/write_latency", 0),
		}
		slices.Sort(a.Initiators)
		out = append(out, a)
	}
	return out
}

// readDistances reads the distance rows. Columns are the online nodes in ascending order. A table
// of another size, as after hotplug during the copy, is dropped with a note.
func (r *reader) readDistances(ids []int) {
	var matrix [][]int
	for _, id := range ids {
		var row []int
		for field := range strings.FieldsSeq(r.text(fmt.Sprintf("%s/node%d/distance", nodeDir, id))) {
			n, err := strconv.Atoi(field)
			if err != nil || n < 0 || len(row) == len(ids) {
				row = nil
				break
			}
			row = append(row, n)
		}
		if len(row) != len(ids) {
			if len(ids) > 1 {
				r.note("the distance row of node %d does not have %d values: distances are ignored", id, len(ids))
			}
			return
		}
		matrix = append(matrix, row)
	}
	r.m.Distances = &topotree.Distances{Nodes: ids, Matrix: matrix}
}
