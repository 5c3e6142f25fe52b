package topotree

import (
	"cmp"
	"fmt"
	"slices"
)

// distanceClasses groups the NUMA nodes with PUs into classes, the best first. Nodes of a class
// have the same values in their rows and columns of the distance table and the same local memory
// rates in firmware. One class or none means that distances do not matter.
func distanceClasses(m *Machine) []CPUSet {
	type standing struct {
		key  string
		far  int
		cpus CPUSet
	}
	var all []standing
	for _, n := range m.Memory {
		if n.Device || n.CPUs.IsEmpty() {
			continue
		}
		s := standing{cpus: n.CPUs}
		s.key, s.far = distanceKey(m, n.ID)
		mbps, ns := localAccess(n)
		s.key = fmt.Sprintf("%08d %08d %s", 99999999-mbps, ns, s.key)
		if slices.ContainsFunc(all, func(o standing) bool { return o.cpus.Intersects(s.cpus) }) {
			continue // another node with the same PUs
		}
		all = append(all, s)
	}
	slices.SortStableFunc(all, func(a, b standing) int {
		return cmp.Or(cmp.Compare(a.far, b.far), cmp.Compare(a.key, b.key))
	})
	var classes []CPUSet
	for i, s := range all {
		if i > 0 && s.key == all[i-1].key {
			classes[len(classes)-1] = classes[len(classes)-1].Union(s.cpus)
			continue
		}
		classes = append(classes, s.cpus)
	}
	return classes
}

// distanceKey returns the sorted row and column of a node as text, and their sum. It ignores nodes
// without PUs, since distances from them do not affect the CPU.
func distanceKey(m *Machine, id int) (string, int) {
	d := m.Distances
	if d == nil {
		return "", 0
	}
	at := slices.Index(d.Nodes, id)
	if at < 0 {
		return "", 0
	}
	var row, col []int
	sum := 0
	for j, other := range d.Nodes {
		n := m.Node(other)
		if n == nil || n.Device || n.CPUs.IsEmpty() {
			continue
		}
		row = append(row, d.Matrix[at][j])
		col = append(col, d.Matrix[j][at])
		sum += d.Matrix[at][j] + d.Matrix[j][at]
	}
	slices.Sort(row)
	slices.Sort(col)
	return fmt.Sprint(row, col), sum
}

// localAccess returns the bandwidth (MB/s) and latency (ns) that HMAT states for accesses from the
// node itself.
func localAccess(n MemoryNode) (mbps, ns int) {
	for _, a := range n.Access {
		if slices.Contains(a.Initiators, n.ID) && a.ReadMBps > 0 {
			return min(a.ReadMBps, 99999999), min(a.ReadNs, 99999999)
		}
	}
	return 0, 0
}
