package topotree

import (
	"fmt"
	"slices"
)

// Description is a machine as plain data, for host.yaml and built-in machines. Machine.Describe
// makes one, and Description.Machine converts it back with the same checks as other readers. It
// does not contain the tree, which follows from the objects.
type Description struct {
	Source    string          `json:"source" yaml:"source"`
	Arch      string          `json:"arch" yaml:"arch"`
	Model     string          `json:"model,omitempty" yaml:"model,omitempty"`
	Kernel    string          `json:"kernel,omitempty" yaml:"kernel,omitempty"`
	Online    CPUSet          `json:"online" yaml:"online"`
	Offline   CPUSet          `json:"offline,omitzero" yaml:"offline,omitempty"`
	Allowed   CPUSet          `json:"allowed" yaml:"allowed"`              // empty: all online
	Mems      CPUSet          `json:"mems,omitzero" yaml:"mems,omitempty"` // empty: all nodes
	QuotaCPUs float64         `json:"quota_cpus,omitempty" yaml:"quota_cpus,omitempty"`
	Levels    []LevelData     `json:"levels" yaml:"levels"`
	Memory    []MemoryNode    `json:"memory" yaml:"memory"`
	Distances *Distances      `json:"distances,omitempty" yaml:"distances,omitempty"`
	CoreTypes []CoreType      `json:"core_types,omitempty" yaml:"core_types,omitempty"`
	Measured  []MeasuredClass `json:"measured,omitempty" yaml:"measured,omitempty"`
	Notes     []string        `json:"notes,omitempty" yaml:"notes,omitempty"`
}

// LevelData holds the objects of one kind and size. IDs[i] belongs to Sets[i]; IDs may be empty.
type LevelData struct {
	Kind  Kind     `json:"kind" yaml:"kind"`
	Bytes int64    `json:"bytes,omitempty" yaml:"bytes,omitempty"` // of each object
	IDs   []int    `json:"ids,omitempty" yaml:"ids,omitempty,flow"`
	Sets  []CPUSet `json:"sets" yaml:"sets,flow"`
}

// IsZero reports whether the set is empty, for omitempty in YAML and omitzero in JSON.
func (s CPUSet) IsZero() bool { return s.IsEmpty() }

// Describe returns the machine as plain data.
func (m *Machine) Describe() Description {
	d := Description{
		Source: m.Source, Arch: m.Arch, Model: m.Model, Kernel: m.Kernel,
		Online: m.Online, Offline: m.Offline, Allowed: m.Allowed, Mems: m.Mems, QuotaCPUs: m.QuotaCPUs,
		Memory: slices.Clone(m.Memory), Distances: m.Distances,
		CoreTypes: slices.Clone(m.CoreTypes), Measured: slices.Clone(m.Measured), Notes: slices.Clone(m.Notes),
	}
	for _, o := range m.Objects {
		i := slices.IndexFunc(d.Levels, func(l LevelData) bool { return l.Kind == o.Kind && l.Bytes == o.Bytes })
		if i < 0 {
			i = len(d.Levels)
			d.Levels = append(d.Levels, LevelData{Kind: o.Kind, Bytes: o.Bytes})
		}
		d.Levels[i].IDs = append(d.Levels[i].IDs, o.ID)
		d.Levels[i].Sets = append(d.Levels[i].Sets, o.CPUs)
	}
	return d
}

// Machine builds the machine that d describes.
func (d Description) Machine() (*Machine, error) {
	m := &Machine{
		Source: d.Source, Arch: d.Arch, Model: d.Model, Kernel: d.Kernel,
		Online: d.Online, Offline: d.Offline, Allowed: d.Allowed, Mems: d.Mems, QuotaCPUs: d.QuotaCPUs,
		Memory: slices.Clone(d.Memory), Distances: d.Distances,
		CoreTypes: slices.Clone(d.CoreTypes), Measured: slices.Clone(d.Measured), Notes: slices.Clone(d.Notes),
	}
	if m.Allowed.IsEmpty() {
		m.Allowed = m.Online
	}
	if !(d.QuotaCPUs >= 0 && d.QuotaCPUs <= MaxPUs) {
		return nil, fmt.Errorf("machine description: invalid quota of %v CPUs", d.QuotaCPUs)
	}
	for _, l := range d.Levels {
		if l.Kind == KindMachine || l.Kind == KindNUMA || l.Kind >= KindPU {
			return nil, fmt.Errorf("machine description: invalid level %s: NUMA nodes belong under "+
				"memory, PUs under online", l.Kind)
		}
		if len(l.IDs) != 0 && len(l.IDs) != len(l.Sets) {
			return nil, fmt.Errorf("machine description: level %s has %d ids for %d sets", l.Kind,
				len(l.IDs), len(l.Sets))
		}
		for i, set := range l.Sets {
			o := Object{Kind: l.Kind, ID: i, CPUs: set, Bytes: l.Bytes}
			if len(l.IDs) > 0 {
				o.ID = l.IDs[i]
			}
			m.Objects = append(m.Objects, o)
		}
	}
	if err := checkDistances(m.Distances); err != nil {
		return nil, fmt.Errorf("machine description: %w", err)
	}
	m, err := Build(m)
	if err != nil {
		return nil, fmt.Errorf("machine description: %w", err)
	}
	return m, nil
}

func checkDistances(d *Distances) error {
	if d == nil {
		return nil
	}
	if len(d.Matrix) != len(d.Nodes) {
		return fmt.Errorf("distances name %d nodes and have %d rows", len(d.Nodes), len(d.Matrix))
	}
	for i, row := range d.Matrix {
		if len(row) != len(d.Nodes) {
			return fmt.Errorf("distance row of node %d has %d columns for %d nodes", d.Nodes[i], len(row), len(d.Nodes))
		}
	}
	return nil
}

// AsReported returns the machine without measured classes, whose tree identifies the host:
// measurements of one host may find different classes.
func (m *Machine) AsReported() *Machine {
	if len(m.Measured) > 0 {
		if plain, err := m.WithMeasured(nil); err == nil {
			return plain
		}
	}
	return m
}

// WithMeasured returns the machine with a tree that is also colored by measured classes.
func (m *Machine) WithMeasured(classes []MeasuredClass) (*Machine, error) {
	d := m.Describe()
	d.Measured = classes
	return d.Machine()
}
