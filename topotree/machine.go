package topotree

import (
	"fmt"
)

// Object is one thing a reader found: a package, die, NUMA node, cache, cluster or core with the
// online PUs in it.
type Object struct {
	Kind  Kind   `json:"kind" yaml:"kind"`
	ID    int    `json:"id" yaml:"id"` // the system's number, -1 when it has none
	CPUs  CPUSet `json:"cpus" yaml:"cpus"`
	Bytes int64  `json:"bytes,omitempty" yaml:"bytes,omitempty"`
}

// MemoryNode is one NUMA node, with or without PUs. Nodes without PUs are never tree levels.
type MemoryNode struct {
	ID     int            `json:"id" yaml:"id"`
	CPUs   CPUSet         `json:"cpus" yaml:"cpus"`
	Bytes  int64          `json:"bytes" yaml:"bytes"`
	Device bool           `json:"device,omitempty" yaml:"device,omitempty"` // memory of a GPU, not for CPU weights
	Caches []MemoryCache  `json:"caches,omitempty" yaml:"caches,omitempty"`
	Access []MemoryAccess `json:"access,omitempty" yaml:"access,omitempty"`
}

// MemoryCache is a memory-side cache in front of a node (Optane in memory mode, KNL cache mode).
type MemoryCache struct {
	Level int   `json:"level" yaml:"level"`
	Bytes int64 `json:"bytes" yaml:"bytes"`
}

// MemoryAccess is what firmware (ACPI HMAT) promises for the best initiators of a node. Zero means
// not stated.
type MemoryAccess struct {
	Class      int   `json:"class" yaml:"class"`
	Initiators []int `json:"initiators" yaml:"initiators,flow"` // node ids
	ReadMBps   int   `json:"read_mbps,omitempty" yaml:"read_mbps,omitempty"`
	WriteMBps  int   `json:"write_mbps,omitempty" yaml:"write_mbps,omitempty"`
	ReadNs     int   `json:"read_ns,omitempty" yaml:"read_ns,omitempty"`
	WriteNs    int   `json:"write_ns,omitempty" yaml:"write_ns,omitempty"`
}

// Distances is the node-by-node table firmware states (ACPI SLIT): Matrix[i][j] from Nodes[i] to
// Nodes[j], 10 local.
type Distances struct {
	Nodes  []int   `json:"nodes" yaml:"nodes,flow"`
	Matrix [][]int `json:"matrix" yaml:"matrix,flow"`
}

// CoreType is one kind of core of a heterogeneous machine. A machine with one class lists none.
// Types are ordered from the fastest.
type CoreType struct {
	Name     string `json:"name" yaml:"name"`
	CPUs     CPUSet `json:"cpus" yaml:"cpus"`
	Capacity int    `json:"capacity,omitempty" yaml:"capacity,omitempty"` // cpu_capacity, 1024 is the fastest
	MaxMHz   int    `json:"max_mhz,omitempty" yaml:"max_mhz,omitempty"`
	BaseMHz  int    `json:"base_mhz,omitempty" yaml:"base_mhz,omitempty"`
}

// MeasuredClass is a class of PUs that a measurement told apart by speed (fast and slow NUMA
// nodes). Classes are ordered from the fastest; PUs in no class form the last one. Clusters of
// equal speed are no classes: they are Clusterings.
type MeasuredClass struct {
	Name string `json:"name" yaml:"name"`
	CPUs CPUSet `json:"cpus" yaml:"cpus"`
}

// Crossing records where the nesting of the hardware is not the usual one, or is not a tree at all.
type Crossing struct {
	Outer Kind   `json:"outer" yaml:"outer"` // the level that stands above in the tree
	Inner Kind   `json:"inner" yaml:"inner"`
	Cut   bool   `json:"cut" yaml:"cut"` // the inner objects were cut at the borders of the outer ones
	Text  string `json:"text" yaml:"text"`
}

// Machine is what a reader found out. It is immutable once read.
type Machine struct {
	Source string // which reader, with its format version
	Arch   string // as uname says: x86_64, aarch64; "" when the description does not tell
	Model  string // CPU model as the system names it
	Kernel string // release of the kernel, when recorded

	Online    CPUSet  // every PU of Tree
	Offline   CPUSet  // present and switched off
	Allowed   CPUSet  // what cgroups, cpuset and affinity leave; a plan uses no other PU
	Mems      CPUSet  // ids of the memory nodes that the cpuset leaves; empty when all are
	QuotaCPUs float64 // CPU time per time that cgroups grant; 0 when unlimited

	Objects   []Object // packages, dies, caches, clusters, cores, uncut; NUMA nodes are in Memory
	Memory    []MemoryNode
	Distances *Distances
	CoreTypes []CoreType
	Measured  []MeasuredClass // different speeds that a measurement found
	Crossings []Crossing
	Notes     []string // what the reader had to assume, one sentence each
	Warning   string   // what a user of the live machine has to know before the tree is used; one of Notes

	Tree *Tree // all online PUs
}

// Usable returns the tree of the PUs a plan may use: Tree itself when all are allowed, else Tree
// without the disallowed PUs, with colors refined where they broke the symmetry. It fails when
// nothing is allowed.
func (m *Machine) Usable() (*Tree, error) {
	if m.Online.In(m.Allowed) {
		return m.Tree, nil
	}
	if !m.Online.Intersects(m.Allowed) {
		return nil, fmt.Errorf("no online CPU is allowed: cpuset and affinity leave %q of %s", m.Allowed, m.Online)
	}
	t, _, err := buildTree(m, m.Online.Intersect(m.Allowed))
	return t, err
}

// WithMeasured returns the machine with its tree colored by measured classes too.
func (m *Machine) WithMeasured(classes []MeasuredClass) (*Machine, error) {
	d := m.Describe()
	d.Measured = classes
	return d.Machine()
}

// MayUse reports whether pages can be placed on a memory node: it exists and the cpuset leaves it.
func (m *Machine) MayUse(node int) bool {
	return m.Node(node) != nil && (m.Mems.IsEmpty() || m.Mems.Contains(node))
}

// CommonNode returns the memory node that holds all of the PUs and that may be used, -1 when there
// is none. It is -1 as well where several nodes have the same PUs: memory bound to one of them
// could not use that of the others.
func (m *Machine) CommonNode(pus CPUSet) int {
	for _, n := range m.Memory {
		if pus.In(n.CPUs) && m.MayUse(n.ID) {
			if len(m.nodesOn(n.CPUs)) > 1 {
				return -1
			}
			return n.ID
		}
	}
	return -1
}

// Node returns the memory node of an id, nil when there is none.
func (m *Machine) Node(id int) *MemoryNode {
	for i := range m.Memory {
		if m.Memory[i].ID == id {
			return &m.Memory[i]
		}
	}
	return nil
}
