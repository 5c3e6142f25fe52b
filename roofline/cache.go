package roofline

import (
	"sandwich/profiles"
	"sandwich/topotree"
)

// Sizes of caches that the machine does not describe.
const (
	assumedL1 = 32 << 10
	assumedL2 = 512 << 10
)

// Upper limits of cache sizes; larger values are errors.
const (
	maxL1 = 1 << 20
	maxL2 = 64 << 20
)

// L1 returns the bytes of the L1 data cache of a core.
func (m *Machine) L1() Answer {
	if size := m.profile.Host.L1D; size > 0 {
		return Answer{Value: float64(min(size, maxL1)), From: "the host"}
	}
	return Answer{assumedL1, true, "assumed for any core"}
}

// L2 returns the bytes of L2 that the core of a PU may use. Cores that share an L2 have equal parts
// of it.
func (m *Machine) L2(pu int) Answer {
	out := Answer{assumedL2, true, "assumed for any core"}
	if m.profile.Machine == nil {
		return out
	}
	for _, o := range m.profile.Machine.Objects {
		if o.Kind == topotree.KindL2 && o.Bytes > 0 && o.CPUs.Contains(pu) {
			share := int(min(o.Bytes, maxL2)) / max(1, coresIn(m.profile, o.CPUs))
			out = Answer{Value: float64(share), From: "the host"}
		}
	}
	return out
}

// coresIn returns the number of cores within a set.
func coresIn(p *profiles.Profile, set topotree.CPUSet) int {
	n := 0
	for _, o := range p.Machine.Objects {
		if o.Kind == topotree.KindCore && o.CPUs.In(set) {
			n++
		}
	}
	return n
}
