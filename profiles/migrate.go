package profiles

import (
	"strconv"
	"strings"

	"sandwich/topotree"
)

// fromVersion1 converts a profile of version 1. Version 1 stored the number of active PUs of a
// ceiling, but not the PUs, which were the first ones in the order of RankedPUs. It named
// saturation domains after tree levels and had no other figures of PU sets; those stay unknown.
func (p *Profile) fromVersion1() {
	if content, err := CanonicalJSON(p); err == nil { // Check rejects values without JSON form, such as NaN
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

// version1Domain translates "numa 3", "l3 7" and "l3 of PU 8". It returns unknown names unchanged;
// Check rejects them.
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

// ReadDigest returns the content digest of the file from which the profile was read if it had an
// older version: the manifest of its bundle has this digest. Otherwise it returns "".
func (p *Profile) ReadDigest() string { return p.read }
