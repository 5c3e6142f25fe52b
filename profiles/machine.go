package profiles

import (
	"encoding/json"
	"fmt"
	"math"

	"sandwich/topotree"
)

// machineDoc is a topotree.Machine in a file: what a reader found. The tree is not stored, it is built again from the objects, by the code that
// builds it for every other reader.
type machineDoc struct {
	Source    string                `yaml:"source" json:"source"`
	Arch      string                `yaml:"arch,omitempty" json:"arch,omitempty"`
	Model     string                `yaml:"model,omitempty" json:"model,omitempty"`
	Kernel    string                `yaml:"kernel,omitempty" json:"kernel,omitempty"`
	Online    topotree.CPUSet       `yaml:"online" json:"online"`
	Offline   topotree.CPUSet       `yaml:"offline" json:"offline"`
	Allowed   topotree.CPUSet       `yaml:"allowed" json:"allowed"`
	QuotaCPUs float64               `yaml:"quota_cpus,omitempty" json:"quota_cpus,omitempty"`
	Tree      string                `yaml:"tree_digest" json:"tree_digest"` // checked when the tree was built again
	Objects   []objectDoc           `yaml:"objects" json:"objects"`
	Memory    []topotree.MemoryNode `yaml:"memory,omitempty" json:"memory,omitempty"`
	Distances *topotree.Distances   `yaml:"distances,omitempty" json:"distances,omitempty"`
	CoreTypes []topotree.CoreType   `yaml:"core_types,omitempty" json:"core_types,omitempty"`
	Notes     []string              `yaml:"notes,omitempty" json:"notes,omitempty"`
}

// objectDoc is a topotree.Object on one line.
type objectDoc topotree.Object

// MarshalYAML writes the object on one line.
func (o objectDoc) MarshalYAML() (any, error) { return FlowYAML(topotree.Object(o)) }

func newMachineDoc(m *topotree.Machine) machineDoc {
	d := machineDoc{
		Source: m.Source, Arch: m.Arch, Model: m.Model, Kernel: m.Kernel,
		Online: m.Online, Offline: m.Offline, Allowed: m.Allowed, QuotaCPUs: m.QuotaCPUs, Tree: m.Tree.Digest().String(),
		Memory: m.Memory, Distances: m.Distances, CoreTypes: m.CoreTypes, Notes: m.Notes,
	}
	for _, o := range m.Objects {
		d.Objects = append(d.Objects, objectDoc(o))
	}
	return d
}

// machine builds the tree and compares it with the digest on file.
func (d *machineDoc) machine() (*topotree.Machine, error) {
	if math.IsNaN(d.QuotaCPUs) || d.QuotaCPUs < 0 || d.QuotaCPUs > topotree.MaxPUs {
		return nil, fmt.Errorf("machine: a quota of %v CPUs", d.QuotaCPUs)
	}
	if d.Allowed.IsEmpty() {
		return nil, fmt.Errorf("machine: no PU is allowed")
	}
	m := &topotree.Machine{
		Source: d.Source, Arch: d.Arch, Model: d.Model, Kernel: d.Kernel,
		Online: d.Online, Offline: d.Offline, Allowed: d.Allowed, QuotaCPUs: d.QuotaCPUs,
		Memory: d.Memory, Distances: d.Distances, CoreTypes: d.CoreTypes, Notes: d.Notes,
	}
	for _, o := range d.Objects {
		if o.Kind <= topotree.KindMachine || o.Kind >= topotree.KindPU {
			return nil, fmt.Errorf("machine: an object of kind %s", o.Kind)
		}
		m.Objects = append(m.Objects, topotree.Object(o))
	}
	if err := checkDistances(d.Distances); err != nil {
		return nil, err
	}
	done, err := topotree.Complete(m)
	if err != nil {
		return nil, err
	}
	if got := done.Tree.Digest().String(); got != d.Tree {
		return nil, fmt.Errorf("machine: the tree has the digest %s and the file says %.40q", got, d.Tree)
	}
	return done, nil
}

func checkDistances(d *topotree.Distances) error {
	if d == nil {
		return nil
	}
	if len(d.Matrix) != len(d.Nodes) {
		return fmt.Errorf("machine: %d rows of distances for %d nodes", len(d.Matrix), len(d.Nodes))
	}
	for _, row := range d.Matrix {
		if len(row) != len(d.Nodes) {
			return fmt.Errorf("machine: a row of %d distances for %d nodes", len(row), len(d.Nodes))
		}
	}
	return nil
}

func (p Profile) document() document {
	return document{Version: p.Version, Host: p.Host, Machine: newMachineDoc(p.Machine), Ceilings: p.Ceilings, Matrices: p.Matrices, Notes: p.Notes}
}

// MarshalYAML writes the form of host.yaml.
func (p Profile) MarshalYAML() (any, error) { return p.document(), nil }

// MarshalJSON writes the fields of host.yaml as JSON.
func (p Profile) MarshalJSON() ([]byte, error) { return json.Marshal(p.document()) }

// UnmarshalYAML reads the form of host.yaml and builds the tree. The version is looked at before anything else.
func (p *Profile) UnmarshalYAML(unmarshal func(any) error) error {
	var d document
	if err := unmarshal(&d); err != nil {
		return err
	}
	if d.Version != Version {
		return fmt.Errorf("version %d; this build reads version %d", d.Version, Version)
	}
	m, err := d.Machine.machine()
	if err != nil {
		return err
	}
	*p = Profile{Version: d.Version, Host: d.Host, Machine: m, Ceilings: d.Ceilings, Matrices: d.Matrices, Notes: d.Notes}
	return nil
}
