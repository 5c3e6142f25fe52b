package profiles

import (
	"encoding/json"
	"errors"
	"fmt"

	"sandwich/topotree"
)

// machineDoc is a topotree.Machine in a file: its description, and the digest of its tree.
type machineDoc struct {
	topotree.Description `yaml:",inline"`
	Tree                 string `yaml:"tree_digest" json:"tree_digest"`
}

func newMachineDoc(m *topotree.Machine) machineDoc {
	return machineDoc{Description: m.Describe(), Tree: m.Tree.Digest().String()}
}

// machine builds the tree and compares it with the digest in the file. Hand-written files may leave
// the digest out.
func (d *machineDoc) machine() (*topotree.Machine, error) {
	m, err := d.Description.Machine()
	if err != nil {
		return nil, err
	}
	if got := m.Tree.Digest().String(); d.Tree != "" && got != d.Tree {
		return nil, fmt.Errorf("machine: the tree has the digest %s, but the file has %.40q", got, d.Tree)
	}
	return m, nil
}

var errNoMachine = errors.New("the profile describes no machine")

func (p Profile) document() (document, error) {
	if p.Machine == nil {
		return document{}, errNoMachine
	}
	return document{Version: p.Version, Host: p.Host, Machine: newMachineDoc(p.Machine), Probe: p.Probe,
		Ceilings: p.Ceilings, Sets: p.Sets, Latent: p.Latent, Matrices: p.Matrices, Devices: p.Devices,
		Notes: p.Notes}, nil
}

// MarshalYAML returns the content of host.yaml.
func (p Profile) MarshalYAML() (any, error) { return p.document() }

// MarshalJSON writes the fields of host.yaml as JSON.
func (p Profile) MarshalJSON() ([]byte, error) {
	d, err := p.document()
	if err != nil {
		return nil, err
	}
	return json.Marshal(d)
}

// UnmarshalYAML parses host.yaml and builds the tree. It migrates version 1, so that no other code
// depends on the version.
func (p *Profile) UnmarshalYAML(unmarshal func(any) error) error {
	var d document
	if err := unmarshal(&d); err != nil {
		return err
	}
	if d.Version != 1 && d.Version != Version {
		return errVersion(d.Version)
	}
	m, err := d.Machine.machine()
	if err != nil {
		return err
	}
	*p = Profile{Version: d.Version, Host: d.Host, Machine: m, Probe: d.Probe,
		Ceilings: d.Ceilings, Sets: d.Sets, Latent: d.Latent, Matrices: d.Matrices,
		Devices: d.Devices, Notes: d.Notes}
	if d.Version == 1 {
		p.fromVersion1()
	}
	return nil
}
