package engine

import (
	"time"

	"sandwich/runtime/cost"
	"sandwich/runtime/exec"
	"sandwich/runtime/phase"
	"sandwich/runtime/sched"
)

// plan lists the steps of the forward that begins, and cuts the ops of a new one that are
// predicted to last longer than its bound. Of a resumed one, whose cut may have been made when the
// machine was faster, ops that did not begin are cut anew.
func (c *cores) plan(act *sched.Action) {
	p, cuts := &c.pace, &c.cuts[act.Set]
	p.quantum = act.Quantum
	l, ops := loadOf(&c.batch), c.runner.Model.Ops
	first := 0 // op that did not begin
	if act.Kind == sched.Resume {
		first = c.refine(act, l)
	} else {
		*cuts = (*cuts)[:0]
	}
	p.ahead = p.ahead[:0]
	var since time.Duration // the forward could halt
	for i := range ops {
		a := ahead{op: i, of: 1}
		if act.Bound > 0 || act.Quantum > 0 {
			a.takes = c.costs.Op(phase.Prefill, i, l)
		}
		if act.Bound > 0 && i >= first {
			*cuts = append((*cuts)[:i], 0)
			since = c.cut(*cuts, i, since, a.takes, act.Bound)
		}
		if i < len(*cuts) {
			a.of = max(1, int((*cuts)[i]))
			if c.runner.meets(i) || (*cuts)[i] > 0 {
				since = 0
			}
		}
		a.takes /= time.Duration(a.of)
		for range a.of {
			p.ahead = append(p.ahead, a)
		}
	}
	c.runner.Cut(*cuts)
	for s := len(p.ahead) - 2; s >= 0; s-- { // what a gate that lets step s begin lets run
		if i := p.ahead[s].op; !c.runner.meets(i) && (i >= len(*cuts) || (*cuts)[i] == 0) {
			p.ahead[s].takes += p.ahead[s+1].takes
		}
	}
}

// cut gives op i, the last of cuts, its steps. Where ranks go on without each other for longer than
// the bound together, they meet before it. It returns how long they do so behind it.
func (c *cores) cut(cuts []uint16, i int, since, takes, bound time.Duration) time.Duration {
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

// refine divides each of the steps of the op in which a halted forward goes on, where they became
// too long, and returns the op behind it: steps of equal shares can be cut into equal shares again,
// so that no column of the op is left out or computed twice.
func (c *cores) refine(act *sched.Action, l cost.Load) (first int) {
	cuts, at := c.cuts[act.Set], c.next
	if len(cuts) < c.runner.Ops() {
		return c.runner.Ops() // it was not to be cut
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

// margin is by how much steps exceed their predictions at times: about the largest ratio of twenty.
// Beside it ops are cut, so that the bound holds for what steps take, not for what is believed of
// them: a hypervisor, or a neighbour, makes single ones several times as long.
type margin float64

// Of twenty steps nineteen lower the margin as much as the twentieth raises it, and no neighbour
// makes cuts finer than a quarter.
const (
	marginUp, marginDown = 1.1, 0.995
	mostMargin           = 4
)

// note takes in what a step took.
func (m *margin) note(took, predicted time.Duration) {
	*m = max(*m, 1)
	if float64(took) > float64(*m)*float64(predicted) {
		*m *= marginUp
	} else {
		*m *= marginDown
	}
	*m = min(max(*m, 1), mostMargin)
}

// steps is into how many an op is cut; a margin that has seen none is 1.
func (m margin) steps(takes, bound time.Duration) int {
	return int(min(float64(max(m, 1))*float64(takes)/float64(bound)+1-1e-9, mostCuts))
}

// mostCuts bounds the steps of one op.
const mostCuts = 512
