package topotree

import (
	"slices"
)

// Localities returns the NUMA nodes with PUs, sorted by index. Nodes with the same PUs, as made by
// NUMA emulation or two kinds of memory, count as one: it has the lowest index, the caches and
// access classes of that node, and the memory of all. Nodes without PUs and device memory are left
// out.
func (m *Machine) Localities() []MemoryNode {
	var out []MemoryNode
	at := map[string]int{}
	for _, n := range m.Memory {
		if n.Device || n.CPUs.IsEmpty() {
			continue
		}
		i, known := at[n.CPUs.Key()]
		switch {
		case !known:
			at[n.CPUs.Key()] = len(out)
			out = append(out, n)
		case n.ID < out[i].ID:
			n.Bytes += out[i].Bytes
			out[i] = n
		default:
			out[i].Bytes += n.Bytes
		}
	}
	slices.SortFunc(out, func(a, b MemoryNode) int { return a.ID - b.ID })
	return out
}

// NodesOn returns the indexes of the NUMA nodes with exactly these PUs, ascending.
func (m *Machine) NodesOn(pus CPUSet) []int {
	var ids []int
	for _, n := range m.Memory {
		if !n.Device && n.CPUs.Equal(pus) {
			ids = append(ids, n.ID)
		}
	}
	slices.Sort(ids)
	return ids
}

// MemoryOnly returns the NUMA nodes without PUs that are not device memory, with the nodes nearest
// to each by the distance table.
func (m *Machine) MemoryOnly() []MemoryOnly {
	var out []MemoryOnly
	for _, n := range m.Memory {
		if n.Device || !n.CPUs.IsEmpty() {
			continue
		}
		o := MemoryOnly{Node: n.ID, Bytes: n.Bytes}
		o.Nearest, o.Distance = m.nearest(n)
		out = append(out, o)
	}
	return out
}

// nearest returns the localities nearest to a node, and their distance. Among several, the
// initiators of the best access class (ACPI HMAT) are preferred.
func (m *Machine) nearest(n MemoryNode) (nodes []int, distance int) {
	d := m.Distances
	if d == nil {
		return nil, 0
	}
	to := slices.Index(d.Nodes, n.ID)
	for _, p := range m.Localities() {
		from := slices.Index(d.Nodes, p.ID)
		if from < 0 || to < 0 {
			continue
		}
		switch far := d.Matrix[from][to]; {
		case far <= 0: // unknown
		case len(nodes) == 0 || far < distance:
			nodes, distance = []int{p.ID}, far
		case far == distance:
			nodes = append(nodes, p.ID)
		}
	}
	slices.Sort(nodes)
	if len(n.Access) > 0 && len(nodes) > 1 {
		best := slices.DeleteFunc(slices.Clone(nodes), func(id int) bool {
			return !slices.Contains(n.Access[0].Initiators, id)
		})
		if len(best) > 0 {
			nodes = best
		}
	}
	return nodes, distance
}

// MayUse reports whether pages can be placed on a memory node: it exists, it has memory, and the
// cpuset permits it.
func (m *Machine) MayUse(node int) bool {
	n := m.Node(node)
	return n != nil && m.HasMemory(n) && (m.Mems.IsEmpty() || m.Mems.Contains(node))
}

// HasMemory reports whether a node has memory, as nodes whose memory channels are empty do not. If
// the size of no node is known, all have some.
func (m *Machine) HasMemory(n *MemoryNode) bool {
	return n.Bytes > 0 || !slices.ContainsFunc(m.Memory, func(o MemoryNode) bool { return o.Bytes > 0 })
}

// CommonNode returns the usable memory node that contains all PUs, or -1. It also returns -1 if
// several nodes have the same PUs, since memory bound to one of them could not use the others.
func (m *Machine) CommonNode(pus CPUSet) int {
	for _, n := range m.Memory {
		if pus.In(n.CPUs) && m.MayUse(n.ID) {
			if len(m.NodesOn(n.CPUs)) > 1 {
				return -1
			}
			return n.ID
		}
	}
	return -1
}

// Node returns the memory node with an index, or nil.
func (m *Machine) Node(id int) *MemoryNode {
	for i := range m.Memory {
		if m.Memory[i].ID == id {
			return &m.Memory[i]
		}
	}
	return nil
}
