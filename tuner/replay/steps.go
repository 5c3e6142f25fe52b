package replay

import (
	"time"

	"sandwich/runtime/cost"
	"sandwich/runtime/phase"
	"sandwich/runtime/sched"
)

// opCost is a Cost that knows the single ops of a prefill.
type opCost interface {
	// PrefillOps returns the times of the ops that Prefill sums up.
	PrefillOps(pos, n int, head bool) []time.Duration
	// Between returns the time that passes before each forward.
	Between() time.Duration
}

// prefillSteps returns the steps of a prefill: its ops, divided if they last longer than the bound,
// as an engine divides them. If a Cost has only the total, all ops have equal length.
func prefillSteps(c Cost, a *sched.Action) (steps []time.Duration) {
	var ops []time.Duration
	if by, ok := c.(opCost); ok {
		ops = by.PrefillOps(a.Pos, a.N, a.Last)
	} else {
		n := max(1, c.Ops())
		each := max(1, c.Prefill(a.Pos, a.N, a.Last)/time.Duration(n))
		for range n {
			ops = append(ops, each)
		}
	}
	for _, op := range ops {
		of := time.Duration(1)
		if a.Bound > 0 && op > a.Bound {
			of = (op + a.Bound - 1) / a.Bound
		}
		for range of {
			steps = append(steps, max(1, op/of))
		}
	}
	return steps
}

// forecast returns the prediction of decode steps for a scheduler.
func forecast(c Cost) func(rows, positions int) time.Duration {
	var seen []int
	return func(rows, positions int) time.Duration {
		seen = seen[:0]
		for range rows {
			seen = append(seen, positions/max(1, rows))
		}
		return c.Decode(seen)
	}
}

// Measured is the cost of forwards by the durations of their ops in an engine on this machine.
type Measured struct{ Table *cost.Table }

// Ops implements Cost.
func (m Measured) Ops() int { return m.Table.Ops() }

// Prefill implements Cost.
func (m Measured) Prefill(pos, n int, head bool) (sum time.Duration) {
	for _, d := range m.PrefillOps(pos, n, head) {
		sum += d
	}
	return sum
}

// Between returns the time in which an engine samples tokens and schedules the next forward.
func (m Measured) Between() time.Duration { return m.Table.Between() }

// PrefillOps returns the durations of the ops of a prefill.
func (m Measured) PrefillOps(pos, n int, head bool) (ops []time.Duration) {
	l := cost.Span(pos, n)
	if head {
		l.Heads = 1
	}
	for i := range m.Table.Ops() {
		ops = append(ops, m.Table.Op(phase.Prefill, i, l))
	}
	return ops
}

// Decode implements Cost.
func (m Measured) Decode(context []int) time.Duration {
	l := cost.Load{Rows: len(context), Heads: len(context)}
	for _, pos := range context {
		l.Positions += pos + 1
	}
	return m.Table.Forward(phase.Decode, l)
}
