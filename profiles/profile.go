package profiles

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"sandwich/microkernel"
	"sandwich/profiles/devrates"
	"sandwich/profiles/retention"
	"sandwich/topotree"
	"sandwich/topotree/sysfs"
)

// Version is the schema version of host.yaml that is written. Version 1 is migrated (fromVersion1);
// others are rejected. FORMAT.md describes the fields.
const Version = 2

// Profile describes a machine and its measured performance: the content of host.yaml.
type Profile struct {
	Version  int
	Host     Identity
	Machine  *topotree.Machine // never nil in a profile that Check accepts
	Ceilings []Ceiling
	Matrices []Matrix
	Sets     []SetFigure       // figures of PU sets: peaks, saturation curves, flows, barriers, all-reduces
	Latent   []Latent          // clusters found in the matrices
	Devices  []devrates.Device // nil: unknown; empty and not nil: the host has none
	Probe    *Probe            // how the figures were measured; nil if nothing was
	Notes    []string          // sentences on assumptions and on what could not be measured

	read string // content digest of a file of an older version; "" otherwise
}

// document is the form of a Profile in YAML and in JSON, which is used for hashes.
type document struct {
	Version  int               `yaml:"version" json:"version"`
	Host     Identity          `yaml:"host" json:"host"`
	Machine  machineDoc        `yaml:"machine" json:"machine"`
	Probe    *Probe            `yaml:"probe,omitempty" json:"probe,omitempty"`
	Ceilings []Ceiling         `yaml:"ceilings,omitempty" json:"ceilings,omitempty"`
	Sets     []SetFigure       `yaml:"sets,omitempty" json:"sets,omitempty"`
	Latent   []Latent          `yaml:"latent,omitempty" json:"latent,omitempty"`
	Matrices []Matrix          `yaml:"matrices,omitempty" json:"matrices,omitempty"`
	Devices  []devrates.Device `yaml:"devices,omitempty" json:"devices,omitempty"`
	Notes    []string          `yaml:"notes,omitempty" json:"notes,omitempty"`
}

// Live describes the machine that this program runs on. It measures nothing.
func Live() (*Profile, error) {
	m, err := sysfs.ReadLive()
	if err != nil {
		return nil, err
	}
	return New(m, liveIdentity(os.DirFS("/"))), nil
}

// New returns a profile of a machine without ceilings. It fills empty fields of the identity from
// the machine.
func New(m *topotree.Machine, id Identity) *Profile {
	setOnce(&id.Arch, goArch(m.Arch))
	setOnce(&id.CPUModel, m.Model)
	setOnce(&id.Kernel, m.Kernel)
	return &Profile{Version: Version, Host: id, Machine: m}
}

// goArch translates a machine name of uname to GOARCH.
func goArch(uname string) string {
	switch uname {
	case "x86_64":
		return "amd64"
	case "aarch64":
		return "arm64"
	}
	return uname
}

// Load reads and checks host.yaml.
func Load(path string) (*Profile, error) {
	data, err := retention.ReadRegular(path, MaxYAMLBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("host profile: %w; make one with `sandwich probe -o %s`", err, path)
	}
	if err != nil {
		return nil, fmt.Errorf("host profile: %w", err)
	}
	p, err := Parse(data)
	if err != nil {
		return nil, fmt.Errorf("host profile %s: %w; make a new one with `sandwich probe -o %s`", path, err,
			filepath.Base(path))
	}
	return p, nil
}

// Parse parses and checks the text of host.yaml.
func Parse(data []byte) (*Profile, error) {
	var p Profile
	if err := DecodeYAML(data, &p); err != nil {
		return nil, err
	}
	if err := p.Check(); err != nil {
		return nil, err
	}
	return &p, nil
}

// Save writes the profile to path and replaces an existing file; see retention.WriteTo.
func (p *Profile) Save(path string) error { return retention.WriteTo(path, p.Encode) }

// Encode writes the text of host.yaml. Equal profiles give equal bytes.
func (p *Profile) Encode(w io.Writer) error {
	data, err := EncodeYAML(p)
	if err != nil {
		return err
	}
	_, err = w.Write(data)
	return err
}

// Check validates the profile. The error names the invalid part.
func (p *Profile) Check() error {
	if p.Version != Version {
		return errVersion(p.Version)
	}
	if p.Machine == nil || p.Machine.Tree == nil {
		return fmt.Errorf("the profile describes no machine")
	}
	if len(p.Host.ISA) > 256 {
		return fmt.Errorf("the profile lists %d instruction set features, more than 256", len(p.Host.ISA))
	}
	for _, c := range p.Ceilings {
		if err := c.check(); err != nil {
			return err
		}
	}
	for _, m := range p.Matrices {
		if err := m.check(); err != nil {
			return err
		}
	}
	for i := range p.Devices {
		if err := p.Devices[i].Check(); err != nil {
			return err
		}
	}
	return p.checkStructure()
}

// Device returns the device with an ID, or nil if the profile lists none.
func (p *Profile) Device(id string) *devrates.Device {
	for i := range p.Devices {
		if p.Devices[i].ID == id {
			return &p.Devices[i]
		}
	}
	return nil
}

// DeviceText lists the devices of the profile for messages.
func (p *Profile) DeviceText() string { return devrates.List(p.Devices) }

func errVersion(v int) error {
	return fmt.Errorf("version %d; this build reads versions 1 and %d", v, Version)
}

// Fingerprint returns the hash that identifies a host in plans: of architecture, CPU model,
// instruction set, tree digest, allowed PUs and quota. Settings, measurements and the kernel
// version do not change it.
func (p *Profile) Fingerprint() string {
	return Digest(struct {
		Arch    string   `json:"arch"`
		Model   string   `json:"cpu_model"`
		ISA     []string `json:"isa"`
		Tree    string   `json:"tree"`
		Allowed string   `json:"allowed"`
		Quota   int      `json:"quota"`
	}{p.Host.Arch, p.Host.CPUModel, slices.Sorted(slices.Values(p.Host.ISA)),
		p.Machine.AsReported().Tree.Digest().String(),
		p.Machine.Allowed.String(), p.Machine.QuotaPUs()})
}

// Features returns the features that kernels may use, from the recorded instruction set and not
// from the CPU model.
func (p *Profile) Features() microkernel.Features { return features(p.Host.ISA) }

// Allowed returns the PUs that this process may use.
func (p *Profile) Allowed() topotree.CPUSet { return p.Machine.Allowed }

// QuotaPUs returns the number of PUs that the CPU quota allows, 0 without a quota.
func (p *Profile) QuotaPUs() int { return p.Machine.QuotaPUs() }

// UsablePUs returns the allowed PUs within the quota. It prefers one PU per core and fast
// cores, and uses SMT siblings only if the quota permits more PUs than cores. An untuned plan may
// use other PUs if the quota leaves a choice (PickPUs).
func (p *Profile) UsablePUs() topotree.CPUSet { return p.FirstPUs(0) }

// CorePUs returns the PUs of UsablePUs with one PU per core. SMT siblings share the multipliers, so
// dense arithmetic gains little from a second thread.
func (p *Profile) CorePUs() topotree.CPUSet {
	ranked := p.rankedPUs()
	return p.cut(ranked[:firstOfCores(ranked)], 0)
}

// RankedPUs returns the PUs of UsablePUs, best first.
func (p *Profile) RankedPUs() []int {
	ranked := p.rankedPUs()
	if q := p.QuotaPUs(); q > 0 {
		ranked = ranked[:min(len(ranked), q)]
	}
	pus := make([]int, len(ranked))
	for i := range pus {
		pus[i] = ranked[i].pu
	}
	return pus
}

// FirstPUs returns the best n usable PUs, sorted; all of them if n <= 0 or n is too large.
func (p *Profile) FirstPUs(n int) topotree.CPUSet { return p.cut(p.rankedPUs(), n) }

// cut returns at most n of the ranked PUs within the quota.
func (p *Profile) cut(ranked []rankedPU, n int) topotree.CPUSet {
	keep := len(ranked)
	if q := p.QuotaPUs(); q > 0 {
		keep = min(keep, q)
	}
	if n > 0 {
		keep = min(keep, n)
	}
	return setOf(ranked[:keep])
}

// rankedPU is an allowed PU with the properties by which it is ranked.
type rankedPU struct {
	pu       int
	sibling  int // number of allowed PUs of its core with lower indexes
	coreType int // 0 is the fastest
	place    int // position in the tree, so that a prefix spans few nodes and caches
}

// rankedPUs returns the allowed PUs, best first.
func (p *Profile) rankedPUs() []rankedPU {
	m := p.Machine
	sibling := map[int]int{}
	for _, o := range m.Objects {
		if o.Kind == topotree.KindCore {
			for i, pu := range o.CPUs.Intersect(m.Allowed).Slice() {
				sibling[pu] = i
			}
		}
	}
	var ranked []rankedPU
	m.Tree.Walk(func(n *topotree.Node, _ int) bool {
		if n.Kind == topotree.KindPU && m.Allowed.Contains(n.ID) {
			r := rankedPU{pu: n.ID, sibling: sibling[n.ID], place: len(ranked)}
			for i, ct := range m.CoreTypes {
				if ct.CPUs.Contains(n.ID) {
					r.coreType = i
				}
			}
			ranked = append(ranked, r)
		}
		return true
	})
	slices.SortFunc(ranked, func(a, b rankedPU) int {
		return cmp.Or(cmp.Compare(a.sibling, b.sibling), cmp.Compare(a.coreType, b.coreType),
			cmp.Compare(a.place, b.place))
	})
	return ranked
}
