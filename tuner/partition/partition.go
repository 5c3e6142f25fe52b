// Package partition divides a model among ranks. A Partition has the untuned default plan of one
// division; while it is open it also has workers, and the weights divided accordingly. The Loader
// keeps at most two partitions open.
package partition

import (
	"fmt"
	"strings"

	"sandwich/plans"
	"sandwich/plans/heuristic"
	"sandwich/runtime/exec"
	"sandwich/runtime/phase"
	"sandwich/topotree"
	"sandwich/tuner/rig"
)

// Partition is one division of the model among ranks.
type Partition struct {
	Subject *Subject
	Plan    *plans.Plan        // untuned plan: incumbent of every search, and a finalist
	Shapes  []plans.TableShape // shapes of the kernel tables
	Name    string             // identifies the partition in messages and in the journal; "": the default plan's

	Workers *exec.Workers // one worker for each usable PU; nil while closed
	Rig     *rig.Rig      // nil while closed, or if the model cannot run here
	Failed  error         // reason why it cannot be opened
}

// New returns a partition with its default plan. cut divides the model; nil leaves the division to
// the default heuristic and the requested ranks and threads.
func New(s *Subject, shape plans.ModelShape, cut *plans.ServiceConfig) (p *Partition, err error) {
	p = &Partition{Subject: s}
	o := s.Plan
	o.Service = cut
	if p.Plan, err = heuristic.Default(s.Profile, shape, o); err != nil {
		return nil, err
	}
	if p.Shapes, err = p.Plan.TableShapes(p.Plan.PUs()); err != nil {
		return nil, err
	}
	return p, nil
}

// describe returns the name of a partition other than the default plan's.
func (p *Partition) describe() string {
	sets := make([]string, len(p.Plan.Ranks))
	for i, r := range p.Plan.Ranks {
		sets[i] = r.PUs.String()
	}
	return fmt.Sprintf("%d ranks on PUs %s", len(sets), strings.Join(sets, " | "))
}

// Phase returns a phase of the default plan.
func (p *Partition) Phase(ph phase.Phase) *plans.Phase {
	if ph == phase.Prefill {
		return &p.Plan.Prefill
	}
	return &p.Plan.Decode
}

// Served returns the phases that run. A pooled model has no decode phase.
func (p *Partition) Served() []phase.Phase {
	if p.Plan.Model.Pooled() {
		return []phase.Phase{phase.Prefill}
	}
	return phase.All[:]
}

// Opened reports whether the partition has workers.
func (p *Partition) Opened() bool { return p.Workers != nil }

// Start starts one worker for each of the PUs.
func (p *Partition) Start(pus topotree.CPUSet) (err error) {
	o := exec.PlanWorkers(p.Plan)
	o.PUs = pus.Slice()
	p.Workers, err = exec.NewWorkers(o)
	return err
}

// Usable returns the PUs from which candidates are made.
func (p *Partition) Usable() topotree.CPUSet {
	if p.Subject.Plan.Threads > 0 || len(p.Plan.Ranks) > 1 { // chosen by the user, or one PU per rank
		return p.Plan.PUs()
	}
	return p.Subject.Profile.UsablePUs()
}

// Shut releases workers and weights.
func (p *Partition) Shut() {
	if p.Rig != nil {
		p.Rig.Close()
	}
	if p.Workers != nil {
		p.Workers.Close()
	}
	p.Rig, p.Workers = nil, nil
}
