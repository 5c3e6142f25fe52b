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
	// Run runs the batch on Buffers from an op on, as exec.Executor.Run does.
	Run func(b *kvcache.Batch, from int, gate exec.Gate) (next int, err error)
}

// runOnCores runs a part of the cores from op next on.
func (f *forward) runOnCores(p *handover.Part) error {
	if f.next == p.From { // else the forward was halted within the part
		if p.Rotates {
			if _, err := f.cores.Run(f.batch, 0, stopAt(1)); err != nil {
				return err
			}
		}
		if err := f.set.border.Take(p, f.model, f.cores.Buffers, f.batch.Rows()); err != nil {
			return err
		}
	}
	next, err := f.cores.Run(f.batch, f.next, &partGate{f, p})
	if err != nil {
		return err
	}
	f.next = next
	return nil
}

// stopAt halts a forward before an op.
type stopAt int

func (s stopAt) Passed(next int) bool { return next >= int(s) }

// partGate halts a forward on the cores at the end of a part.
type partGate struct {
	*forward
	part *handover.Part
}

func (g *partGate) Passed(next int) bool {
	if g.gate != nil && g.gate.Passed(next) {
		g.halted = true
	}
	return g.halted || next >= g.part.To
}
