package topotree

// Report is the stable JSON of `sandwich probe --format json`: counts and CPU sets as hwloc defines
// them. Sets are those of the objects before levels were reordered or split.
type Report struct {
	Summary   Summary      `json:"summary"`
	Sets      Sets         `json:"sets"`
	Allowed   CPUSet       `json:"allowed"`
	Offline   CPUSet       `json:"offline"`
	QuotaCPUs float64      `json:"quota_cpus,omitempty"`
	Crossings []Crossing   `json:"crossings"`
	CoreTypes []CoreType   `json:"core_types,omitempty"`
	Memory    []MemoryNode `json:"memory"`
	// memory without PUs, with its nearest nodes
	MemoryOnly []MemoryOnly `json:"memory_only,omitempty"`
	Distances  *Distances   `json:"distances,omitempty"`
	Colors     []ColorInfo  `json:"colors"`
	Splits     []string     `json:"splits,omitempty"`
	Notes      []string     `json:"notes,omitempty"`
	Digest     Digest       `json:"digest"`
	Tree       *Node        `json:"tree"`
}

// Summary holds counts of a machine.
type Summary struct {
	Source           string `json:"source"`
	Arch             string `json:"arch"`
	Model            string `json:"model,omitempty"`
	Kernel           string `json:"kernel,omitempty"`
	Packages         int    `json:"packages"`
	Dies             int    `json:"dies"`
	NUMANodes        int    `json:"numa_nodes"`        // without device memory
	NUMALocalities   int    `json:"numa_localities"`   // distinct non-empty CPU sets of nodes
	MemoryOnlyNodes  int    `json:"memory_only_nodes"` // without device memory
	DeviceNodes      int    `json:"device_nodes"`      // memory of devices
	MemorySideCaches int    `json:"memory_side_caches"`
	LLCLevel         int    `json:"llc_level"` // 0 if no cache is described
	LLC              int    `json:"llc"`
	L4               int    `json:"l4"`
	L3               int    `json:"l3"`
	L2               int    `json:"l2"`
	Clusters         int    `json:"clusters"`
	Cores            int    `json:"cores"`
	PUs              int    `json:"pus"`
	AllowedPUs       int    `json:"allowed_pus"`
}

// NumberedSet is a CPU set with the OS index of its object, null if there is none.
type NumberedSet struct {
	OS   *int   `json:"os"`
	CPUs CPUSet `json:"cpus"`
}

// Sets holds the CPU sets of all objects in tree order.
type Sets struct {
	Machine CPUSet        `json:"machine"`
	Package []NumberedSet `json:"package"`
	Die     []CPUSet      `json:"die"`
	NUMA    []NumberedSet `json:"numa"`
	L4      []CPUSet      `json:"l4,omitempty"`
	L3      []CPUSet      `json:"l3"`
	Cluster []CPUSet      `json:"cluster"`
	Group   []CPUSet      `json:"group,omitempty"`
	L2      []CPUSet      `json:"l2"`
	Core    []CPUSet      `json:"core"`
}

// Report returns the machine as `sandwich probe` prints it.
func (m *Machine) Report() Report {
	r := Report{
		Summary: m.Summary(),
		Sets: Sets{
			Machine: m.Online,
			Package: []NumberedSet{},
			Die:     m.sets(KindDie),
			NUMA:    []NumberedSet{},
			L4:      m.sets(KindL4),
			L3:      m.sets(KindL3),
			Cluster: m.sets(KindCluster),
			Group:   m.sets(KindGroup),
			L2:      m.sets(KindL2),
			Core:    m.sets(KindCore),
		},
		Allowed: m.Allowed, Offline: m.Offline, QuotaCPUs: m.QuotaCPUs,
		Crossings: append([]Crossing{}, m.Crossings...),
		CoreTypes: m.CoreTypes, Memory: append([]MemoryNode{}, m.Memory...), Distances: m.Distances,
		MemoryOnly: m.MemoryOnly(),
		Colors:     m.Tree.Palette(), Splits: m.Tree.Splits(), Notes: m.Notes,
		Digest: m.Tree.Digest(), Tree: m.Tree.Root(),
	}
	for _, o := range m.Objects {
		if o.Kind == KindPackage {
			r.Sets.Package = append(r.Sets.Package, numbered(o.ID, o.CPUs))
		}
	}
	for _, n := range m.Memory {
		if !n.Device {
			r.Sets.NUMA = append(r.Sets.NUMA, numbered(n.ID, n.CPUs))
		}
	}
	return r
}

func numbered(id int, cpus CPUSet) NumberedSet {
	if id < 0 {
		return NumberedSet{nil, cpus}
	}
	return NumberedSet{&id, cpus}
}

// Summary counts the machine's objects.
func (m *Machine) Summary() Summary {
	s := Summary{
		Source: m.Source, Arch: m.Arch, Model: m.Model, Kernel: m.Kernel,
		Packages: len(m.sets(KindPackage)), Dies: len(m.sets(KindDie)),
		L4: len(m.sets(KindL4)), L3: len(m.sets(KindL3)), L2: len(m.sets(KindL2)),
		Clusters: len(m.sets(KindCluster)), Cores: len(m.sets(KindCore)),
		PUs: m.Online.Count(), AllowedPUs: m.Allowed.Count(),
	}
	for _, n := range m.Memory {
		s.MemorySideCaches += len(n.Caches)
		switch {
		case n.Device:
			s.DeviceNodes++
			continue
		case n.CPUs.IsEmpty():
			s.MemoryOnlyNodes++
		}
		s.NUMANodes++
	}
	s.NUMALocalities = len(m.Localities())
	for _, level := range []struct{ number, count int }{{4, s.L4}, {3, s.L3}, {2, s.L2}} {
		if level.count > 0 {
			s.LLCLevel, s.LLC = level.number, level.count
			break
		}
	}
	return s
}

// sets returns the CPU sets of one kind in tree order, an empty list if there are none.
func (m *Machine) sets(kind Kind) []CPUSet {
	out := []CPUSet{}
	for _, o := range m.Objects {
		if o.Kind == kind {
			out = append(out, o.CPUs)
		}
	}
	return out
}
