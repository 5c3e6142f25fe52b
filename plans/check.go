package plans

import (
	"fmt"
	"strings"

	"sandwich/profiles"
	"sandwich/topotree"
)

// Check tells whether the bundle may run here: whether this is the machine it was made on, with
// every instruction and every PU that it uses, and whether the model has the shape it was made for.
// host and shape may be nil where they are not known yet. The kinds of refusal are ErrISA,
// ErrForeignHost and ErrForeignModel; Read has refused what is damaged. What only costs speed is
// for Verify to say.
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

// sameMachine compares what makes tuned numbers void: architecture, CPU model and topology.
func sameMachine(made, here *profiles.Profile) error {
	switch {
	case made.Host.Arch != here.Host.Arch:
		return foreignHost("it was made on %s and this is %s", clip(made.Host.Arch), here.Host.Arch)
	case made.Host.CPUModel != here.Host.CPUModel:
		return foreignHost("it was made on %q and this CPU is %q", clip(made.Host.CPUModel), clip(here.Host.CPUModel))
	case made.Machine.Tree.Digest() != here.Machine.Tree.Digest():
		return foreignHost("it was made on another topology (%d PUs, tree %s; here %d PUs, tree %s)",
			made.Machine.Tree.PUs(), made.Machine.Tree.Digest(), here.Machine.Tree.PUs(), here.Machine.Tree.Digest())
	}
	return nil
}

// CheckHost wants every instruction, every PU and every memory node that the plan uses: ErrISA or
// ErrForeignHost.
func (p *Plan) CheckHost(host *profiles.Profile) error {
	if need := p.Needs(); !host.Features().Has(need) {
		return fmt.Errorf("%w: the plan %s needs %s, which this CPU (%s) lacks", ErrISA, p.Name,
			strings.Join(lacking(need, host.Features()), ", "), host.Host.CPUModel)
	}
	for i := range p.Classes {
		if why := p.Classes[i].lacks(host.Features(), host.Machine); why != "" && !p.Classes[i].Optional {
			return foreignHost("the plan %s has workers of class %s and %s", p.Name, p.Classes[i], why)
		}
	}
	allowed := host.Allowed().Slice()
	if missing := p.PUs().missing(allowed); len(missing) > 0 {
		return foreignHost("the plan %s uses the PUs %s and this process may use %s", p.Name, missing, PUSet(allowed))
	}
	if q := host.QuotaPUs(); q > 0 && max(len(p.Prefill.PUs), len(p.Decode.PUs)) > q {
		return foreignHost("the plan %s uses %d PUs at once and the CPU quota pays for %d", p.Name,
			max(len(p.Prefill.PUs), len(p.Decode.PUs)), q)
	}
	return p.checkNodes(host.Machine)
}

// checkNodes wants the memory node of every rank: it may be gone, or outside the cpuset.
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
			return foreignHost("rank %d of the plan %s keeps its memory on NUMA node %d and this machine has "+
				"the nodes %s", i, p.Name, r.NUMANode, nodes)
		default:
			return foreignHost("rank %d of the plan %s keeps its memory on NUMA node %d and the cpuset of this "+
				"process leaves the nodes %s: widen it", i, p.Name, r.NUMANode, nodes)
		}
	}
	return nil
}

// checkModel compares digests, and says what differs and what the plan was made for:
// ErrForeignModel.
func (b *Bundle) checkModel(s *ModelShape) error {
	p := &b.Plan
	if p.Model.Digest() == s.Digest() {
		return nil
	}
	made := p.Model.Title()
	if b.Evidence.Model != "" {
		made = fmt.Sprintf("%q", clip(b.Evidence.Model))
	}
	return fmt.Errorf("%w: the plan %s is for %s, and this model differs in %s",
		ErrForeignModel, p.Name, made, differenceText(&p.Model, s))
}

// Title is the model as messages name it.
func (s ModelShape) Title() string {
	if s.Name != "" {
		return fmt.Sprintf("%q", clip(s.Name))
	}
	return "a nameless " + clip(s.Arch)
}

func clip(s string) string {
	if len(s) > 60 {
		return s[:60] + "..."
	}
	return s
}
