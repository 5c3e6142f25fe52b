package profiles

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"sandwich/microkernel"
	"sandwich/profiles/retention"
	"sandwich/topotree"
)

// Version is the schema version of host.yaml that is written. Version 1 is read too (see
// fromVersion1); readers refuse others by name. FORMAT.md describes the fields.
const Version = 2

// Profile is a machine and what it can do: host.yaml.
type Profile struct {
	Version  int
	Host     Identity
	Machine  *topotree.Machine // never nil in a profile that Check accepts
	Ceilings []Ceiling
	Matrices []Matrix
	Sets     []SetFigure // figures of PU sets: peaks, saturation curves, flows, barriers, all-reduces
	Latent   []Latent    // structure found in the matrices
	Probe    *Probe      // how the measured figures came about; nil when nothing was measured
	Notes    []string    // one sentence each: what was assumed, what could not be measured

	read string // digest of the content as it was read from a file of an older version; "" otherwise
}

// document is the form of a Profile in YAML and, for hashes, in JSON.
type document struct {
	Version  int         `yaml:"version" json:"version"`
	Host     Identity    `yaml:"host" json:"host"`
	Machine  machineDoc  `yaml:"machine" json:"machine"`
	Probe    *Probe      `yaml:"probe,omitempty" json:"probe,omitempty"`
	Ceilings []Ceiling   `yaml:"ceilings,omitempty" json:"ceilings,omitempty"`
	Sets     []SetFigure `yaml:"sets,omitempty" json:"sets,omitempty"`
	Latent   []Latent    `yaml:"latent,omitempty" json:"latent,omitempty"`
	Matrices []Matrix    `yaml:"matrices,omitempty" json:"matrices,omitempty"`
	Notes    []string    `yaml:"notes,omitempty" json:"notes,omitempty"`
}

// Live describes the machine this program runs on, without measuring anything.
func Live() (*Profile, error) {
	m, err := topotree.ReadLive()
	if err != nil {
		return nil, err
	}
	return New(m, liveIdentity(os.DirFS("/"))), nil
}

// New makes a profile of a machine that a reader described, without any ceiling. What the identity
// does not say is taken from the machine.
func New(m *topotree.Machine, id Identity) *Profile {
	setOnce(&id.Arch, goArch(m.Arch))
	setOnce(&id.CPUModel, m.Model)
	setOnce(&id.Kernel, m.Kernel)
	return &Profile{Version: Version, Host: id, Machine: m}
}

// goArch translates the name that uname prints.
func goArch(uname string) string {
	switch uname {
	case "x86_64":
		return "amd64"
	case "aarch64":
		return "arm64"
	}
	return uname
}

// Load reads host.yaml. It refuses what Check refuses.
func Load(path string) (*Profile, error) {
	data, err := retention.ReadRegular(path, MaxYAMLBytes)
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

// Parse reads the text of host.yaml.
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

// Save replaces the file at path by the profile, as retention.WriteTo does.
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

// Check refuses profiles that describe no machine, naming what is wrong.
func (p *Profile) Check() error {
	if p.Version != Version {
		return errVersion(p.Version)
	}
	if p.Machine == nil || p.Machine.Tree == nil {
		return fmt.Errorf("it describes no machine")
	}
	if len(p.Host.ISA) > 256 {
		return fmt.Errorf("it names %d instruction set features", len(p.Host.ISA))
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
	return p.checkStructure()
}

func errVersion(v int) error {
	return fmt.Errorf("version %d; this build reads versions 1 and %d", v, Version)
}

// Fingerprint is the hash by which a plan knows its host: over the architecture, CPU model,
// instruction set, tree digest, allowed PUs and quota. Settings, everything measured and the
// kernel's version do not count.
func (p *Profile) Fingerprint() string {
	return Digest(struct {
		Arch    string   `json:"arch"`
		Model   string   `json:"cpu_model"`
		ISA     []string `json:"isa"`
		Tree    string   `json:"tree"`
		Allowed string   `json:"allowed"`
		Quota   int      `json:"quota"`
	}{p.Host.Arch, p.Host.CPUModel, slices.Sorted(slices.Values(p.Host.ISA)), p.treeDigest(),
		p.Machine.Allowed.String(), p.Machine.QuotaPUs()})
}

// Features is the set that kernels are gated on, from the recorded instruction set; never from the
// CPU model.
func (p *Profile) Features() microkernel.Features { return features(p.Host.ISA) }

// Allowed is the set of PUs that this process may use.
func (p *Profile) Allowed() topotree.CPUSet { return p.Machine.Allowed }

// QuotaPUs is how many PUs the CPU quota pays for, 0 without a quota.
func (p *Profile) QuotaPUs() int { return p.Machine.QuotaPUs() }

// UsablePUs lists the allowed PUs, cut to the quota: one PU of each core first, of fast cores
// before slow ones, and SMT siblings only when a quota leaves room for them. The result is sorted.
// Where the quota leaves a choice an untuned plan may run on other PUs (PickPUs).
func (p *Profile) UsablePUs() []int { return p.FirstPUs(0) }

// CorePUs returns the PUs of UsablePUs with one PU per core: SMT siblings share the multipliers, so
// dense arithmetic gains little from a second thread.
func (p *Profile) CorePUs() []int {
	ranked := p.rankedPUs()
	return p.cut(ranked[:firstOfCores(ranked)], 0)
}

// RankedPUs returns the PUs of UsablePUs in the order in which they are best put to work.
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

// FirstPUs returns the best n of the usable PUs, sorted; all of them for n <= 0 or n too large.
func (p *Profile) FirstPUs(n int) []int { return p.cut(p.rankedPUs(), n) }

func (p *Profile) cut(ranked []rankedPU, n int) []int {
	keep := len(ranked)
	if q := p.QuotaPUs(); q > 0 {
		keep = min(keep, q)
	}
	if n > 0 {
		keep = min(keep, n)
	}
	return sortedPUs(ranked[:keep])
}

// rankedPU is an allowed PU with what decides how early it is used.
type rankedPU struct {
	pu       int
	sibling  int // how many allowed PUs of its core have lower numbers
	coreType int // 0 is the fastest
	place    int // from left to right in the tree, so that a cut stays within as few nodes and caches as possible
}

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
