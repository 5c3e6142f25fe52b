package candidates

import (
	"slices"

	"sandwich/profiles"
	"sandwich/topotree"
)

// site is the part of a machine that determines the possible configurations.
type site struct {
	usable topotree.CPUSet // PUs that the process may use
	cores  topotree.CPUSet // one PU of each core
	max    int             // number of PUs that the quota covers
	nodes  []topotree.MemoryNode
	sized  bool // the sizes of the nodes are known
}

func newSite(p *profiles.Profile) *site {
	s := &site{usable: p.Machine.Online.Intersect(p.Machine.Allowed), max: p.QuotaPUs()}
	if s.max == 0 {
		s.max = s.usable.Count()
	}
	for _, n := range p.Machine.Memory {
		if !n.Device && p.Machine.MayUse(n.ID) {
			s.nodes = append(s.nodes, n)
			s.sized = s.sized || n.Bytes > 0
		}
	}
	seen := map[int]bool{}
	var twins topotree.CPUSet
	for _, o := range p.Machine.Objects {
		if o.Kind != topotree.KindCore {
			continue
		}
		if set := o.CPUs.Intersect(s.usable); set.Count() > 1 && !seen[set.First()] {
			seen[set.First()] = true
			twins = twins.Union(set.Minus(topotree.NewCPUSet(set.First())))
		}
	}
	s.cores = s.usable.Minus(twins)
	return s
}

// nodesOf returns the memory nodes that are nearest to PUs and have memory. It returns false if no
// such node has memory, and an empty list on a machine without nodes.
func (s *site) nodesOf(pus topotree.CPUSet) (out []int, ok bool) {
	near := false
	for _, n := range s.nodes {
		if !n.CPUs.Intersects(pus) {
			continue
		}
		near = true
		if n.Bytes > 0 || !s.sized {
			out = append(out, n.ID)
		}
	}
	slices.Sort(out)
	return out, len(out) > 0 || !near
}

// fits reports whether the quota covers the PUs of both phases and the process may use them.
func (s *site) fits(prefill, decode topotree.CPUSet) bool {
	return !prefill.IsEmpty() && !decode.IsEmpty() && prefill.Count() <= s.max && decode.Count() <= s.max &&
		prefill.In(s.usable) && decode.In(s.usable)
}
