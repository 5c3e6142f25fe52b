package engine

import (
	"time"

	"sandwich/runtime/cost"
	"sandwich/runtime/exec"
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
	l, ops := loadOf(&c.batch), c.runner.Model.Ops
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
			since = c.cut(*cuts, i, since, a.takes, act.Bound)
		}
		if i < len(*cuts) {
			a.of = max(1, int((*cuts)[i]))
			if c.runner.haltsAfter(i) || (*cuts)[i] > 0 {
				since = 0
			}
		}
		a.takes /= time.Duration(a.of)
		for range a.of {
			p.steps = append(p.steps, a)
		}
	}
	for s := len(p.steps) - 2; s >= 0; s-- { // add the steps up to the next place to halt
		if i := p.steps[s].op; !c.runner.haltsAfter(i) && (i >= len(*cuts) || (*cuts)[i] == 0) {
			p.steps[s].takes += p.steps[s+1].takes
		}
	}
}

// cut sets the number of steps of op i, the last of cuts. If op i would exceed the bound together
// with the ops since the last place to halt, it adds a place to halt before op i. It returns the
// predicted time between the last place to halt and the end of op i.
func (c *lane) cut(cuts []uint16, i int, since, takes, bound time.Duration) time.Duration {
	if since > 0 && since+takes > bound {
		cuts[i-1], since = max(cuts[i-1], 1), 0
	}
	if exec.Cuttable(&c.runner.Model.Ops[i]) {
		if n := c.margin.steps(takes, bound); n > 1 {
			cuts[i] = uint16(n)
			return 0
		}
	}
	return since + takes
}

// refine divides the steps of the op in which a halted forward continues, if they are now predicted
// to exceed the bound, and returns the op after it. Steps have equal shares of an op, so each can
// be divided into equal shares without omitting or repeating a column.
func (c *lane) refine(act *sched.Action, l cost.Load) (first int) {
	cuts, at := c.cuts[act.Set], c.next
	if len(cuts) < c.runner.Ops() {
		return c.runner.Ops() // the forward was not cut
	}
	for ; at >= max(1, int(cuts[first])); first++ {
		at -= max(1, int(cuts[first]))
	}
	if at == 0 || act.Bound == 0 {
		return first
	}
	of := int(cuts[first])
	takes := c.costs.Op(phase.Prefill, first, l) / time.Duration(of)
	if n := min(c.margin.steps(takes, act.Bound), mostCuts/of); n > 1 {
		cuts[first] *= uint16(n)
		c.next += at * (n - 1)
	}
	return first + 1
}

// margin estimates the 95th percentile of the ratio of a step's measured to its predicted time.
// Predictions are multiplied by it before ops are cut, since a hypervisor or a noisy neighbor can
// make single steps several times as long.
type margin float64

// One step above the margin raises it about as much as nineteen steps below lower it. mostMargin
// limits the effect of noisy neighbors on the number of steps.
const (
	marginUp, marginDown = 1.1, 0.995
	mostMargin           = 4
)

// note updates the margin with a measured and a predicted time.
func (m *margin) note(took, predicted time.Duration) {
	*m = max(*m, 1)
	if float64(took) > float64(*m)*float64(predicted) {
		*m *= marginUp
	} else {
		*m *= marginDown
	}
	*m = min(max(*m, 1), mostMargin)
}

// steps returns the number of steps into which an op with a predicted time is cut. The zero margin
// counts as 1.
func (m margin) steps(takes, bound time.Duration) int {
	return int(min(float64(max(m, 1))*float64(takes)/float64(bound)+1-1e-9, mostCuts))
}

// mostCuts is the limit of steps of one op.
const mostCuts = 512
