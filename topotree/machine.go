package topotree

// Object is a hardware object: a package, die, NUMA node, cache, cluster or core with its online
// PUs.
type Object struct {
	Kind  Kind   `json:"kind" yaml:"kind"`
	ID    int    `json:"id" yaml:"id"` // OS index, -1 if unknown
	CPUs  CPUSet `json:"cpus" yaml:"cpus"`
	Bytes int64  `json:"bytes,omitempty" yaml:"bytes,omitempty"`
}

// MemoryNode is a NUMA node with or without PUs. Nodes without PUs do not form tree levels.
type MemoryNode struct {
	ID     int            `json:"id" yaml:"id"`
	CPUs   CPUSet         `json:"cpus" yaml:"cpus"`
	Bytes  int64          `json:"bytes" yaml:"bytes"`
	Device bool           `json:"device,omitempty" yaml:"device,omitempty"` // memory of a GPU, not for CPU weights
	Caches []MemoryCache  `json:"caches,omitempty" yaml:"caches,omitempty"`
	Access []MemoryAccess `json:"access,omitempty" yaml:"access,omitempty"`
}

// MemoryCache is a memory-side cache of a node (Optane in memory mode, KNL cache mode).
type MemoryCache struct {
	Level int   `json:"level" yaml:"level"`
	Bytes int64 `json:"bytes" yaml:"bytes"`
}

// MemoryAccess holds the rates that firmware (ACPI HMAT) states for the best initiators of a node.
// 0 means unknown.
type MemoryAccess struct {
	Class      int   `json:"class" yaml:"class"`
	Initiators []int `json:"initiators" yaml:"initiators,flow"` // node ids
	ReadMBps   int   `json:"read_mbps,omitempty" yaml:"read_mbps,omitempty"`
	WriteMBps  int   `json:"write_mbps,omitempty" yaml:"write_mbps,omitempty"`
	ReadNs     int   `json:"read_ns,omitempty" yaml:"read_ns,omitempty"`
	WriteNs    int   `json:"write_ns,omitempty" yaml:"write_ns,omitempty"`
}

// Distances is the table of node distances from firmware (ACPI SLIT): Matrix[i][j] is the distance
// from Nodes[i] to Nodes[j]; 10 is local.
type Distances struct {
	Nodes  []int   `json:"nodes" yaml:"nodes,flow"`
	Matrix [][]int `json:"matrix" yaml:"matrix,flow"`
}

// CoreType is a core type of a heterogeneous machine. A machine with one core type lists none.
// Types are sorted, fastest first.
type CoreType struct {
	Name     string `json:"name" yaml:"name"`
	CPUs     CPUSet `json:"cpus" yaml:"cpus"`
	Capacity int    `json:"capacity,omitempty" yaml:"capacity,omitempty"` // cpu_capacity, 1024 is the fastest
	MaxMHz   int    `json:"max_mhz,omitempty" yaml:"max_mhz,omitempty"`
	BaseMHz  int    `json:"base_mhz,omitempty" yaml:"base_mhz,omitempty"`
}

// MeasuredClass is a class of PUs of distinct measured speed, such as PUs on fast and slow NUMA
// nodes. Classes are sorted, fastest first; PUs in no class form the last one. Clusters of equal
// speed are Clusterings instead.
type MeasuredClass struct {
	Name string `json:"name" yaml:"name"`
	CPUs CPUSet `json:"cpus" yaml:"cpus"`
}

// Crossing records an unusual nesting of levels, or objects that overlap without nesting.
type Crossing struct {
	Outer Kind   `json:"outer" yaml:"outer"` // the upper level in the tree
	Inner Kind   `json:"inner" yaml:"inner"`
	Cut   bool   `json:"cut" yaml:"cut"` // inner objects were split at the borders of outer ones
	Text  string `json:"text" yaml:"text"`
}

// Machine is a machine as a reader describes it. It is immutable.
type Machine struct {
	Source string // reader, with its format version
	Arch   string // as in uname: x86_64, aarch64; "" if unknown
	Model  string // CPU model as the system names it
	Kernel string // kernel release, if known

	Online    CPUSet  // all PUs of Tree
	Offline   CPUSet  // present but offline
	Allowed   CPUSet  // PUs that cgroups, cpuset and affinity permit; plans use only these
	Mems      CPUSet  // memory nodes that the cpuset permits; empty: all
	QuotaCPUs float64 // CPU quota of cgroups; 0: unlimited

	Objects   []Object // packages, dies, caches, clusters, cores before any split; NUMA nodes are in Memory
	Memory    []MemoryNode
	Distances *Distances
	CoreTypes []CoreType
	Measured  []MeasuredClass // classes of distinct measured speed
	Crossings []Crossing
	Notes     []string // assumptions of the reader
	Warning   string   // a note that users of the live machine must see; also in Notes

	Tree *Tree // all online PUs
}

// MaxMemoryNodes is the largest number of memory nodes of a machine.
const MaxMemoryNodes = 4096
