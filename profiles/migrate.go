package profiles

import (
	"strconv"
	"strings"

	"sandwich/topotree"
)

// fromVersion1 makes a profile of version 1 one of this version. Version 1 said of a ceiling how
// many PUs were at work and not which: they were the first ones in the order in which PUs are put
// to work. It named saturation domains after the level of the tree, and it had none of the other
// figures of sets: what it does not say stays unknown.
func (p *Profile) fromVersion1() {
	if content, err := CanonicalJSON(p); err == nil { // what has no JSON, such as NaN, Check refuses
		p.read = DigestBytes(content)
	}
	p.Version = Version
	ranked := p.RankedPUs()
	for i := range p.Ceilings {
		if c := &p.Ceilings[i]; c.Measured() && c.Device == "" && c.CPUs.IsEmpty() && c.PUs <= len(ranked) {
			c.CPUs = topotree.NewCPUSet(ranked[:c.PUs]...)
		}
	}
	for i := range p.Sets {
		if f := &p.Sets[i]; f.Name == Saturation {
			f.Domain = version1Domain(p.Machine, f)
		}
	}
}

// version1Domain translates "numa 3", "l3 7" and "l3 of PU 8"; a name that it does not know is left
// for Check to refuse.
func version1Domain(m *topotree.Machine, f *SetFigure) string {
	kind, number, _ := strings.Cut(f.Domain, " ")
	switch kind {
	case topotree.KindNUMA.String():
		return "node " + number
	case topotree.KindL3.String(), topotree.KindL4.String():
		if pu, ok := strings.CutPrefix(number, "of PU "); ok {
			return clusterPrefix + pu
		}
		for _, o := range m.Objects {
			if o.Kind.String() == kind && strconv.Itoa(o.ID) == number {
				return ClusterDomain(o.CPUs)
			}
		}
	}
	return f.Domain
}

// ReadDigest is the digest of the content of the file that the profile was decoded from, where that
// is of an older version: what the manifest of its bundle holds. It is "" where the profile itself
// has the digest.
func (p *Profile) ReadDigest() string { return p.read }
