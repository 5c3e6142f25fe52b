package partition

import (
	"slices"
	"time"

	"sandwich/runtime/mem"
	"sandwich/tuner/measure/kernels"
	"sandwich/tuner/rig"
)

// LastLevel is kernels.LastLevel of the PUs that may be used.
func (p *Partition) LastLevel() int64 { return kernels.LastLevel(p.Subject.Profile, p.Usable()) }

// ModelBytes returns the size of the model's packed weights.
func (p *Partition) ModelBytes() int64 { return rig.ModelBytes(p.Plan.Model) }

// ColdBytes returns the bytes of weights through which forwards and trials cycle, so that the
// weights are as cold as in serving: all of the model's, or a multiple of the last-level cache that
// evicts the previous round. rate is the number of bytes that may be made per second of the budget.
func (p *Partition) ColdBytes(rate float64, budget time.Duration) int64 {
	all := p.ModelBytes()
	if last := p.LastLevel(); all > last {
		all = min(all, kernels.RoundBytes(p.Subject.Profile, p.Usable()))
	}
	return min(all, max(64<<20, int64(rate*budget.Seconds())))
}

// randomBytes returns the size of a model with random weights.
func (p *Partition) randomBytes(budget time.Duration) int64 {
	limit := p.ColdBytes(8<<20, budget)
	if free := mem.Available(); free > 0 {
		limit = min(limit, free/4)
	}
	return limit
}

// Numbers of positions before each sequence of a decode forward, and before one sequence in a step
// whose time includes much attention.
const (
	decodeDepth = 128
	longDepth   = 2048
)

// rigSize returns the size of the forwards that the races run.
func (p *Partition) rigSize() rig.Size {
	return rig.Size{Batch: p.Plan.BatchMax, Depth: min(decodeDepth, max(1, p.Plan.Model.Context-1)),
		Long: slices.Max(append(p.StepDepths(), 0))}
}

// StepDepths returns the numbers of positions before the rows of one sequence whose decode steps
// are measured by their number of rows, ascending. It is empty if the model has a shorter context.
func (p *Partition) StepDepths() (out []int) {
	for _, n := range []int{decodeDepth, longDepth} {
		if !p.Plan.Model.Pooled() && (p.Plan.Model.Context == 0 || n+p.Plan.BatchMax <= p.Plan.Model.Context) {
			out = append(out, n)
		}
	}
	return out
}
