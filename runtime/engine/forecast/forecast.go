// Package forecast makes the table of costs of a model under a plan before any op is measured.
package forecast

import (
	"fmt"

	"sandwich/plans"
	"sandwich/profiles"
	"sandwich/roofline"
	"sandwich/runtime/cost"
	"sandwich/runtime/model"
	"sandwich/topotree"
)

// Rates of a machine without measured ceilings, in FLOP/s and bytes/s. They are used until the
// first forward has run. Every machine reaches them, so that forwards are not predicted too short
// to be cut. Package steptimes assumes typical rates instead.
const (
	minPeak      = 1e10
	minBandwidth = 5e9
)

// exactPath is the path of attention, and of weights for which the plan names none.
const exactPath = "f32"

// NewCosts returns a table that predicts the time of the model's ops. Until ops are measured,
// predictions follow from the ceilings of the profile; if the profile is nil or has no ceilings,
// from rates that every machine reaches.
func NewCosts(m *model.Model, plan *plans.Plan, p *profiles.Profile) *cost.Table {
	var ceilings [2]map[string]roofline.Ceiling
	if p != nil {
		machine := roofline.NewMachine(p)
		for i, pus := range []topotree.CPUSet{plan.Prefill.PUs, plan.Decode.PUs} {
			// An error leaves a nil map: costs then follow from the lowest rates.
			ceilings[i], _ = machine.CoreCeilings(pus, plan.Widest(), plan.Arithmetics())
		}
	}
	index := map[string]int{}
	var classes []cost.Class
	ops := make([]int, len(m.Ops))
	for i := range m.Ops {
		c := classOf(m, plan, &m.Ops[i], ceilings)
		at, known := index[c.Name]
		if !known {
			at = len(classes)
			index[c.Name] = at
			classes = append(classes, c)
		}
		ops[i] = at
	}
	return cost.New(classes, ops)
}

// classOf returns the cost class of an op, which is named by the kind of the op and its weights.
func classOf(m *model.Model, plan *plans.Plan, op *model.Op, ceilings [2]map[string]roofline.Ceiling) cost.Class {
	c := cost.Class{Name: op.Kind.String(), Attend: op.Kind == model.OpAttention,
		Head: op.Kind == model.OpGather || op.Wanted || op.Kind == model.OpPool || op.Kind == model.OpSoftmax}
	if c.Attend {
		c.Name += fmt.Sprintf(" %+v", op.Attn)
	}
	for phase := range c.Prior {
		c.Prior[phase] = priorOf(m, plan, op, ceilings[phase])
	}
	for _, wi := range op.W {
		w := &m.Weights[wi]
		c.Name += fmt.Sprintf(" %dx%d %s", w.N, w.K, w.Tensor.Type)
	}
	return c
}

// priorOf predicts the cost of an op from ceilings by path.
func priorOf(m *model.Model, plan *plans.Plan, op *model.Op, ceilings map[string]roofline.Ceiling) (p cost.Prior) {
	ceiling := func(path string) (peak, bandwidth float64) {
		if r, ok := ceilings[path]; ok && r.Targets[0].Peak > 0 && r.Bandwidth > 0 {
			return r.Targets[0].Peak, r.Bandwidth
		}
		return minPeak, minBandwidth
	}
	d := m.Dims
	if op.Kind == model.OpAttention {
		peak, bandwidth := ceiling(exactPath)
		h := op.Heads
		p.Position = max(4*float64(h.Q*h.Dim)/peak, 4*float64(h.KV*h.Dim)/bandwidth/float64(h.Q))
		return p
	}
	for _, wi := range op.W {
		w := &m.Weights[wi]
		key := plans.WeightKey{N: w.N, K: w.K, Type: w.Tensor.Type.String()}
		path := exactPath
		if chosen, ok := plan.Weight(key); ok {
			path = chosen.Compute.Ceiling()
		}
		peak, bandwidth := ceiling(path)
		values := float64(w.N) * float64(w.K)
		rows := 1.0
		if w.Stack > 1 {
			rows = float64(m.Experts.Used)
		}
		p.Row += 2 * values * rows / peak
		p.Fixed += values * roofline.Bits(key.Type) / 8 * rows / bandwidth
	}
	if len(op.W) == 0 { // row by row over activations, in caches
		p.Row = 16 * float64(d.Hidden) / minPeak
	}
	return p
}
