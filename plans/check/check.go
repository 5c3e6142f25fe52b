// Package check compares plans with a host and a model: whether a plan may run there, and whether
// it should be tuned again.
package check

import (
	"fmt"

	"sandwich/internal/message"
	"sandwich/plans"
	"sandwich/plans/bundle"
	"sandwich/plans/diff"
	"sandwich/profiles"
)

// Bundle reports whether a bundle may run on a host and with a model. The host must be the machine
// that the plan was made on, with every instruction and PU that the plan uses. The model must have
// the shape that the plan was made for. host or shape may be nil; then it is not checked. Errors
// are ErrISA, ErrForeignHost and ErrForeignModel. Differences that only cost speed are reported by
// Verify.
func Bundle(b *bundle.Bundle, host *profiles.Profile, shape *plans.ModelShape) error {
	if host != nil {
		if err := b.Plan.CheckHost(host); err != nil {
			return err
		}
		if err := sameMachine(&b.Host, host); err != nil {
			return fmt.Errorf("%w; make a plan for this host with `sandwich tune`", err)
		}
	}
	if shape != nil {
		return checkModel(b, shape)
	}
	return nil
}

// sameMachine compares the properties on which tuned numbers depend: architecture, CPU model and
// topology.
func sameMachine(made, here *profiles.Profile) error {
	was, is := made.Machine.AsReported().Tree, here.Machine.AsReported().Tree
	switch {
	case made.Host.Arch != here.Host.Arch:
		return fmt.Errorf("%w: it was made on %s and this is %s", plans.ErrForeignHost,
			message.Clip(made.Host.Arch, 60), here.Host.Arch)
	case made.Host.CPUModel != here.Host.CPUModel:
		return fmt.Errorf("%w: it was made on %q and this CPU is %q", plans.ErrForeignHost,
			message.Clip(made.Host.CPUModel, 60),
			message.Clip(here.Host.CPUModel, 60))
	case was.Digest() != is.Digest():
		return fmt.Errorf("%w: it was made on another topology (%d PUs, tree %s; here %d PUs, tree %s)",
			plans.ErrForeignHost, was.PUs(), was.Digest(), is.PUs(), is.Digest())
	}
	return nil
}

// checkModel compares the digest of a model with that of the plan's model. The error is
// ErrForeignModel and names the differences.
func checkModel(b *bundle.Bundle, s *plans.ModelShape) error {
	p := &b.Plan
	if p.Model.Digest() == s.Digest() {
		return nil
	}
	made := p.Model.Title()
	if b.Evidence.Model != "" {
		made = fmt.Sprintf("%q", message.Clip(b.Evidence.Model, 60))
	}
	return fmt.Errorf("%w: the plan %s is for %s, and this model differs in %s",
		plans.ErrForeignModel, p.Name, made, diff.ModelText(&p.Model, s))
}
