// Package renumber adapts a plan to a host with the same topology whose usable PUs have other
// numbers: another set of CPUs of equal shape, or the same machine numbered by other firmware.
package renumber

import (
	"fmt"

	"sandwich/plans"
	"sandwich/plans/bundle"
	"sandwich/profiles"
	"sandwich/topotree"
	"sandwich/topotree/isomorph"
)

// Bundle returns the bundle with the PUs and NUMA nodes of its plan replaced by those of a host
// whose usable PUs form an equivalent part of an equal tree, and text that names the change. The
// kernels, schedules and the number of workers stay as they are. It returns the bundle itself and
// "" if no number changes. The error is ErrForeignHost if the parts are not equivalent. The result
// is for use in memory: its profile keeps only the figures of the plan's host that name no PUs, and
// its signatures are those of the original.
func Bundle(b *bundle.Bundle, host *profiles.Profile) (*bundle.Bundle, string, error) {
	m, ok := isomorph.Map(b.Host.Machine.AsReported().Tree, b.Host.Allowed(), host.Machine.AsReported().Tree,
		host.Allowed())
	if !ok {
		return nil, "", fmt.Errorf("%w: the plan %s was made with the PUs %s, which are not equivalent to the PUs %s "+
			"of this process", plans.ErrForeignHost, b.Plan.Name, b.Host.Allowed(), host.Allowed())
	}
	if m.Identity() {
		return b, "", nil
	}
	out := *b
	if err := renumber(&out.Plan, m, &b.Host, host); err != nil {
		return nil, "", err
	}
	out.Host = b.Host
	out.Host.Machine, out.Host.Matrices, out.Host.Sets, out.Host.Latent = host.Machine, nil, nil, nil
	out.Host.Ceilings = nil
	for _, c := range b.Host.Ceilings {
		c.CPUs = m.Set(c.CPUs)
		out.Host.Ceilings = append(out.Host.Ceilings, c)
	}
	out.Plan.Fingerprint = out.Host.Fingerprint()
	if err := out.Plan.Validate(); err != nil {
		return nil, "", fmt.Errorf("renumber plan %s: %w", b.Plan.Name, err)
	}
	return &out, fmt.Sprintf("its PUs %s are the PUs %s here", b.Plan.PUs(), out.Plan.PUs()), nil
}

// renumber replaces the PUs and nodes of a plan.
func renumber(p *plans.Plan, m isomorph.Mapping, made, host *profiles.Profile) error {
	name, all := p.Name, p.PUs()
	for _, r := range p.Ranks {
		all = all.Union(r.PUs)
	}
	if lost := all.Minus(made.Allowed()); !lost.IsEmpty() {
		return fmt.Errorf("%w: the plan %s uses the PUs %s, which its host did not allow", plans.ErrForeignHost, name,
			lost)
	}
	ranks := make([]plans.Rank, len(p.Ranks))
	for i, r := range p.Ranks {
		node, err := nodeOf(r, m, made.Machine, host.Machine)
		if err != nil {
			return fmt.Errorf("rank %d of the plan %s: %w", i, name, err)
		}
		ranks[i] = plans.Rank{PUs: m.Set(r.PUs), NUMANode: node}
	}
	classes := make([]plans.Class, len(p.Classes))
	for i, c := range p.Classes {
		c.PUs = m.Set(c.PUs)
		classes[i] = c
	}
	if len(classes) == 0 {
		classes = nil
	}
	p.Ranks, p.Classes = ranks, classes
	p.Prefill.PUs, p.Decode.PUs = m.Set(p.Prefill.PUs), m.Set(p.Decode.PUs)
	return nil
}

// nodeOf returns the NUMA node here that corresponds to the node of a rank.
func nodeOf(r plans.Rank, m isomorph.Mapping, made, here *topotree.Machine) (int, error) {
	if r.NUMANode < 0 {
		return r.NUMANode, nil
	}
	if node, ok := m.Nodes[r.NUMANode]; ok {
		return node, nil
	}
	if made.CommonNode(r.PUs) == r.NUMANode {
		return here.CommonNode(m.Set(r.PUs)), nil
	}
	return 0, fmt.Errorf("%w: its memory is on NUMA node %d, which does not belong to its PUs %s, so the node cannot "+
		"be renumbered", plans.ErrForeignHost, r.NUMANode, r.PUs)
}
