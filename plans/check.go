package plans

import (
	"fmt"
	"strings"

	"sandwich/internal/message"
	"sandwich/profiles"
	"sandwich/topotree"
)

// Check reports whether the bundle may run on a host and with a model. The host must be the machine
// that the plan was made on, with every instruction and PU that the plan uses. The model must have
// the shape that the plan was made for. host or shape may be nil; then it is not checked. Errors
// are ErrISA, ErrForeignHost and ErrForeignModel. Differences that only cost speed are reported by
// Verify.
func Check(b *Bundle, host *profiles.Profile, shape *ModelShape) error {
	if host != nil {
		if err := b.Plan.CheckHost(host); err != nil {
			return err
		}
		if err := sameMachine(&b.Host, host); err != nil {
			return fmt.Errorf("%w; make a plan for this host with `sandwich tune`", err)
		}
	}
	if shape != nil {
		return b.checkModel(shape)
	}
	return nil
}

// sameMachine compares the properties on which tuned numbers depend: architecture, CPU model and
// topology.
func sameMachine(made, here *profiles.Profile) error {
	switch {
	case made.Host.Arch != here.Host.Arch:
		return foreignHost("it was made on %s and this is %s", message.Clip(made.Host.Arch, 60), here.Host.Arch)
	case made.Host.CPUModel != here.Host.CPUModel:
		return foreignHost("it was made on %q and this CPU is %q", message.Clip(made.Host.CPUModel, 60),
			message.Clip(here.Host.CPUModel, 60))
	case made.Machine.Tree.Digest() != here.Machine.Tree.Digest():
		return foreignHost("it was made on another topology (%d PUs, tree %s; here %d PUs, tree %s)",
			made.Machine.Tree.PUs(), made.Machine.Tree.Digest(), here.Machine.Tree.PUs(), here.Machine.Tree.Digest())
	}
	return nil
}

// CheckHost reports whether the host has every instruction, PU, memory node and device that the
// plan uses. It fails with ErrISA or ErrForeignHost.
func (p *Plan) CheckHost(host *profiles.Profile) error {
	if need := p.Needs(); !host.Features().Has(need) {
		return fmt.Errorf("%w: the plan %s needs %s, which this CPU (%s) lacks", ErrISA, p.Name,
			strings.Join(lacking(need, host.Features()), ", "), host.Host.CPUModel)
	}
	for i := range p.Classes {
		if why := p.Classes[i].lacks(host.Features(), host.Machine); why != "" && !p.Classes[i].Optional {
			return foreignHost("the plan %s has workers of class %s, but %s", p.Name, p.Classes[i], why)
		}
	}
	allowed := host.Allowed().Slice()
	if missing := p.PUs().missing(allowed); len(missing) > 0 {
		return foreignHost("the plan %s uses the PUs %s, but this process may use only %s", p.Name, missing,
			PUSet(allowed))
	}
	if q := host.QuotaPUs(); q > 0 && max(len(p.Prefill.PUs), len(p.Decode.PUs)) > q {
		return foreignHost("the plan %s uses %d PUs at once, but the CPU quota allows %d", p.Name,
			max(len(p.Prefill.PUs), len(p.Decode.PUs)), q)
	}
	if err := p.checkDevice(host); err != nil {
		return err
	}
	return p.checkNodes(host.Machine)
}

// checkNodes checks the memory node of each rank: the machine may lack it, or the cpuset may
// exclude it.
func (p *Plan) checkNodes(m *topotree.Machine) error {
	var nodes PUSet
	for _, n := range m.Memory {
		if m.MayUse(n.ID) {
			nodes = append(nodes, n.ID)
		}
	}
	for i, r := range p.Ranks {
		switch {
		case r.NUMANode < 0 || len(nodes) == 0 || m.MayUse(r.NUMANode):
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

// checkModel compares the digest of a model with that of the plan's model. The error is
// ErrForeignModel and names the differences.
func (b *Bundle) checkModel(s *ModelShape) error {
	p := &b.Plan
	if p.Model.Digest() == s.Digest() {
		return nil
	}
	made := p.Model.Title()
	if b.Evidence.Model != "" {
		made = fmt.Sprintf("%q", message.Clip(b.Evidence.Model, 60))
	}
	return fmt.Errorf("%w: the plan %s is for %s, and this model differs in %s",
		ErrForeignModel, p.Name, made, differenceText(&p.Model, s))
}

// Title returns the model's name as messages show it.
func (s ModelShape) Title() string {
	if s.Name != "" {
		return fmt.Sprintf("%q", message.Clip(s.Name, 60))
	}
	return "an unnamed model of architecture " + message.Clip(s.Arch, 60)
}
