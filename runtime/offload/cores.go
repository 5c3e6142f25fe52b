package offload

import (
	"sandwich/runtime/exec"
	"sandwich/runtime/kvcache"
	"sandwich/runtime/offload/handover"
)

// Cores computes the parts of a forward that Options.ExpertsOnCores or Options.Layers leave to the
// cores.
type Cores struct {
	// Buffers are the activations of the forward on the cores. They stay the forward's own while it
	// is halted.
	Buffers *exec.Buffers
	// Steps has the number of steps of each op, as in exec.Buffers.Cut. Only ops of the parts have
	// several. nil: all have one.
	Steps []uint16
	// Run runs the batch on Buffers from a step on, as exec.Executor.Run does.
	Run func(b *kvcache.Batch, from int, gate exec.Gate) (next int, err error)
}

// stepsOf returns the number of steps of an op.
func (c *Cores) stepsOf(op int) int {
	if c == nil || op >= len(c.Steps) {
		return 1
	}
	return max(1, int(c.Steps[op]))
}

// stepOf returns the index of the first step of an op.
func (c *Cores) stepOf(op int) (step int) {
	for i := range op {
		step += c.stepsOf(i)
	}
	return step
}

// locate returns the op of a step, and how many of its steps precede it.
func (c *Cores) locate(step int) (op, inside int) {
	for step >= c.stepsOf(op) {
		step -= c.stepsOf(op)
		op++
	}
	return op, step
}

// runOnCores runs a part of the cores from the next step on.
func (f *forward) runOnCores(p *handover.Part) error {
	if f.next == p.From && f.inside == 0 { // else the forward was halted within the part
		if p.Rotates {
			if _, err := f.cores.Run(f.batch, 0, stopAt(1)); err != nil {
				return err
			}
		}
		if err := f.set.border.Take(p, f.model, f.cores.Buffers, f.batch.Rows()); err != nil {
			return err
		}
	}
	next, err := f.cores.Run(f.batch, f.cores.stepOf(f.next)+f.inside, &partGate{f, f.cores.stepOf(p.To)})
	if err != nil {
		return err
	}
	f.next, f.inside = f.cores.locate(next)
	return nil
}

// stopAt halts a forward before an op.
type stopAt int

func (s stopAt) Passed(next int) bool { return next >= int(s) }

// partGate halts a forward on the cores at the end of a part.
type partGate struct {
	*forward
	end int // step after the part
}

func (g *partGate) Passed(next int) bool {
	if g.gate != nil && g.gate.Passed(next) {
		g.halted = true
	}
	return g.halted || next >= g.end
}
