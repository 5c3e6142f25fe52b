package trace

import (
	"fmt"
	"time"

	"sandwich/plans"
	"sandwich/profiles"
	"sandwich/roofline"
	"sandwich/runtime/model"
	"sandwich/topotree"
)

// Cost says how long forwards take.
type Cost interface {
	// Prefill is the time of n rows of one sequence that follow pos earlier ones; head says that
	// the logits of the last row are computed.
	Prefill(pos, n int, head bool) time.Duration
	// Decode is the time of one row of each of several sequences, each with as many positions
	// before it.
	Decode(context []int) time.Duration
	// Ops is how many boundaries a forward has at which a prefill can be stopped.
	Ops() int
}

// RoofCost predicts forwards from the ceilings of a profile (DESIGN tuner step 2): every operator
// at the roof of its own arithmetic, times how near to it kernels come.
type RoofCost struct {
	work    *model.Work
	phases  [2]map[string]roofline.Roof // prefill, decode; by data type
	ops     int
	barrier [2]float64 // seconds between operators, by phase
	near    float64
}

// assumedNear is the share of the roof that the default schedules reach. Assumed.
const assumedNear = 0.8

// NewRoofCost is the cost of a model under a plan's service configuration on the machine of a
// profile. m is the model as its file describes it; nil where only its shape is known, the plan's,
// which says nothing of windows. It fails where the profile lacks a ceiling.
func NewRoofCost(p *profiles.Profile, plan *plans.Plan, m *model.Model) (*RoofCost, error) {
	if m == nil {
		var err error
		if m, err = model.Outline(plan.Model); err != nil {
			return nil, fmt.Errorf("predicting forwards: %w", err)
		}
	}
	work, err := model.NewWork(m, plan)
	if err != nil {
		return nil, fmt.Errorf("predicting forwards: %w", err)
	}
	c := &RoofCost{work: work, ops: len(m.Ops), near: assumedNear}
	machine := roofline.NewMachine(p)
	for i, pus := range []plans.PUSet{plan.Prefill.PUs, plan.Decode.PUs} {
		set := topotree.NewCPUSet(pus...)
		if c.phases[i], err = machine.CoreRoofs(set, plan.Widest(), plan.Arithmetics()); err != nil {
			return nil, fmt.Errorf("predicting forwards: %w", err)
		}
		c.barrier[i] = machine.Barrier(set).Value
	}
	return c, nil
}

// Ops implements Cost.
func (c *RoofCost) Ops() int { return c.ops }

// Prefill implements Cost.
func (c *RoofCost) Prefill(pos, n int, head bool) time.Duration {
	rows := model.Rows{Spans: []model.Span{{Pos: pos, N: n}}}
	if head {
		rows.Heads = 1
	}
	return c.forward(0, rows)
}

// Decode implements Cost.
func (c *RoofCost) Decode(context []int) time.Duration {
	rows := model.Rows{Heads: len(context)}
	for _, pos := range context {
		rows.Spans = append(rows.Spans, model.Span{Pos: pos, N: 1})
	}
	return c.forward(1, rows)
}

// forward is all tasks one after the other, with a barrier after each operator.
func (c *RoofCost) forward(phase int, rows model.Rows) time.Duration {
	seconds := float64(c.ops) * c.barrier[phase]
	for _, t := range c.work.Of(rows) {
		r := c.phases[phase][t.Compute]
		seconds += r.Seconds(r.Targets[0], t.Work) / c.near
	}
	return time.Duration(seconds * float64(time.Second))
}
