package engine

import (
	"time"

	"sandwich/runtime/cost"
	"sandwich/runtime/exec"
	"sandwich/runtime/model"
	"sandwich/runtime/phase"
	"sandwich/runtime/sched"
)

// plan lists the steps of the forward that begins. It cuts ops that are predicted to take longer
// than the bound of the forward into several steps. For a resumed forward it cuts the ops that have
// not begun again, since their predictions may have changed.
func (c *lane) plan(act *sched.Action) {
	if c.device != nil {
		c.planOnDevice(act)
		return
	}
	p, cuts := &c.gate, &c.cuts[act.Set]
	p.quantum = act.Quantum
	l, ops := loadOf(&c.batch), c.e.runner.Model.Ops
	first := 0 // first op that has not begun
	if act.Kind == sched.Resume {
		first = c.refine(act, l)
	} else {
		*cuts = (*cuts)[:0]
	}
	p.steps = p.steps[:0]
	var since time.Duration // predicted time since the last place to halt
	for i := range ops {
		a := plannedStep{op: i, of: 1}
		if act.Bound > 0 || act.Quantum > 0 {
			a.takes = c.costs.Op(phase.Prefill, i, l)
		}
		if act.Bound > 0 && i >= first {
			*cuts = append((*cuts)[:i], 0)
			since = c.cut(*cuts, i, since, a.takes, act.Bound, c.cuttable(act, &ops[i]))
		}
		if i < len(*cuts) {
			a.of = max(1, int((*cuts)[i]))
			if c.e.runner.HaltsAfter(i) || (*cuts)[i] > 0 {
				since = 0
			}
		}
		a.takes /= time.Duration(a.of)
		for range a.of {
			p.steps = append(p.steps, a)
		}
	}
	for s := len(p.steps) - 2; s >= 0; s-- { // add the steps up to the next place to halt
		if i := p.steps[s].op; !c.e.runner.HaltsAfter(i) && (i >= len(*cuts) || (*cuts)[i] == 0) {
			p.steps[s].takes += p.steps[s+1].takes
		}
	}
}

// cut sets the number of steps of op i, the last of cuts. If op i would exceed the bound together
// with the ops since the last place to halt, it adds a place to halt before op i. It returns the
// predicted time between the last place to halt and the end of op i.
func (c *lane) cut(cuts []uint16, i int, since, takes, bound time.Duration, cuttable bool) time.Duration {
	if since > 0 && since+takes > bound {
		cuts[i-1], since = max(cuts[i-1], 1), 0
	}
	if cuttable {
		if n := c.margin.steps(takes, bound); n > 1 {
			cuts[i] = uint16(n)
			return 0
		}
	}
	return since + takes
}

// cuttable reports whether an op of a forward can be divided: on the cores, not on a device.
func (c *lane) cuttable(act *sched.Action, op *model.Op) bool {
	return exec.Cuttable(op) && (op.Kind == model.OpExperts || !c.shares(act.Kind.Phase()))
}

// refine divides the steps of the op in which a halted forward continues, if they are now predicted
// to exceed the bound, and returns the op after it. Steps have equal shares of an op, so each can
// be divided into equal shares without omitting or repeating a column.
func (c *lane) refine(act *sched.Action, l cost.Load) (first int) {
	cuts, at := c.cuts[act.Set], c.next
	if len(cuts) < c.e.runner.Ops() {
		return c.e.runner.Ops() // the forward was not cut
	}
	for ; at >= max(1, int(cuts[first])); first++ {
		at -= max(1, int(cuts[first]))
	}
	if at == 0 || act.Bound == 0 {
		return first
	}
	of := int(cuts[first])
	takes := c.costs.Op(phase.Prefill, first, l) / time.Duration(of)
	if n := min(c.margin.steps(takes, act.Bound), maxCuts/of); n > 1 {
		cuts[first] *= uint16(n)
		c.next += at * (n - 1)
	}
	return first + 1
}

// shares reports whether the device runs the forwards of a phase but for the experts.
func (c *lane) shares(p phase.Phase) bool { return c.shared[p] && c.e.onDevice.device != nil }

// planOnDevice lists the ops of a forward on the device as its steps.
func (c *lane) planOnDevice(act *sched.Action) {
	p := &c.gate
	p.quantum = act.Quantum
	l := loadOf(&c.batch)
	p.steps = p.steps[:0]
	for i := range c.e.runner.Model.Ops {
		p.steps = append(p.steps, plannedStep{op: i, of: 1, takes: c.costs.Op(act.Kind.Phase(), i, l)})
	}
}

// learn updates the table of costs with the step times of the forward that ended.
func (c *lane) learn(act *sched.Action) {
	of := act.Kind.Phase()
	l := loadOf(&c.batch)
	var inside time.Duration
	for _, s := range c.gate.spans {
		inside += s.took
		if s.to == s.from+1 {
			a := c.gate.steps[s.from]
			c.costs.Observe(a.op, a.of, s.took)
			if a.of > 1 {
				c.margin.note(s.took, a.takes)
			}
			continue
		}
		// With several ranks, times are known only between gathers and cuts. The time between two
		// of them is divided among the ops in proportion to their predictions.
		var all time.Duration
		for _, a := range c.gate.steps[s.from:s.to] {
			all += c.costs.Op(of, a.op, l) / time.Duration(a.of)
		}
		for _, a := range c.gate.steps[s.from:s.to] {
			share := 1 / float64(s.to-s.from) // without predictions
			if all > 0 {
				share = float64(c.costs.Op(of, a.op, l)/time.Duration(a.of)) / float64(all)
			}
			c.costs.Observe(a.op, a.of, time.Duration(share*float64(s.took)))
		}
	}
	c.costs.Learn(of, l)
	if c.gap > 0 { // and the overhead before the first op and after the last one
		c.costs.ObserveBetween(c.gap + max(0, c.took-inside))
	}
}
