package plans

import (
	"fmt"
	"slices"
	"strings"

	"sandwich/microkernel"
	"sandwich/profiles"
	"sandwich/topotree"
)

// CheckHost reports whether the host has every instruction, PU, memory node and device that the
// plan uses. It fails with ErrISA or ErrForeignHost.
func (p *Plan) CheckHost(host *profiles.Profile) error {
	if need := p.Needs(); !host.Features().Has(need) {
		return fmt.Errorf("%w: the plan %s needs %s, which this CPU (%s) lacks", ErrISA, p.Name,
			strings.Join(MissingFeatures(need, host.Features()), ", "), host.Host.CPUModel)
	}
	for i := range p.Classes {
		if why := p.Classes[i].Lacks(host.Features(), host.Machine); why != "" && !p.Classes[i].Optional {
			return foreignHost("the plan %s has workers of class %s, but %s", p.Name, p.Classes[i], why)
		}
	}
	allowed := host.Allowed()
	if missing := p.PUs().Minus(allowed); !missing.IsEmpty() {
		return foreignHost("the plan %s uses the PUs %s, but this process may use only %s", p.Name, missing, allowed)
	}
	if q := host.QuotaPUs(); q > 0 && max(p.Prefill.PUs.Count(), p.Decode.PUs.Count()) > q {
		return foreignHost("the plan %s uses %d PUs at once, but the CPU quota allows %d", p.Name,
			max(p.Prefill.PUs.Count(), p.Decode.PUs.Count()), q)
	}
	if err := p.checkDevice(host); err != nil {
		return err
	}
	return p.checkNodes(host.Machine)
}

// checkNodes checks the memory node of each rank: the machine may lack it, or the cpuset may
// exclude it.
func (p *Plan) checkNodes(m *topotree.Machine) error {
	var nodes topotree.CPUSet
	for _, n := range m.Memory {
		if m.MayUse(n.ID) {
			nodes = nodes.Union(topotree.NewCPUSet(n.ID))
		}
	}
	for i, r := range p.Ranks {
		switch {
		case r.NUMANode < 0 || nodes.IsEmpty() || m.MayUse(r.NUMANode):
		case m.Node(r.NUMANode) == nil:
			return foreignHost("rank %d of the plan %s keeps its memory on NUMA node %d, but this machine has "+
				"the nodes %s", i, p.Name, r.NUMANode, nodes)
		default:
			return foreignHost("rank %d of the plan %s keeps its memory on NUMA node %d, but the cpuset of this "+
				"process allows only the nodes %s: add the node to the cpuset", i, p.Name, r.NUMANode, nodes)
		}
	}
	return nil
}

// MissingFeatures returns the names of the features that are in need but not in have, sorted.
func MissingFeatures(need, have microkernel.Features) []string {
	return slices.Sorted(strings.SplitSeq((need &^ have).String(), ","))
}
