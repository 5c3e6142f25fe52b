package replay

import (
	"time"

	"sandwich/runtime/sched"
)

// NewReport returns the report of measured outcomes.
func NewReport(outcomes []Outcome, elapsed, busy time.Duration, s sched.Stats) *Report {
	return &Report{Outcomes: outcomes, Elapsed: elapsed, Busy: busy, Sched: s}
}

// Of returns the report of one class. The figures of the machine remain those of all classes.
func (r *Report) Of(c sched.Class) *Report {
	out := *r
	out.Outcomes = nil
	for _, o := range r.Outcomes {
		if o.Class == c {
			out.Outcomes = append(out.Outcomes, o)
		}
	}
	return &out
}

// Normalized returns the time from arrival to the last token, divided by the tokens of prompt and
// answer (Agent.xpu section 6.1).
func (o *Outcome) Normalized() time.Duration {
	return (o.End - o.At) / time.Duration(max(1, o.Prompt+o.Tokens))
}

// Pending returns the time from arrival to the first forward, or 0 if unknown.
func (o *Outcome) Pending() time.Duration { return max(0, o.Started-o.At) }

// Latency returns the time from arrival to the last token.
func (o *Outcome) Latency() time.Duration { return o.End - o.At }

// Quantile returns quantile q of the times that of returns for the finished requests, or 0 if
// there are none.
func (r *Report) Quantile(q float64, of func(*Outcome) time.Duration) time.Duration {
	return Quantile(r.times(of), q)
}

// Mean returns the mean of a time over the finished requests, or 0 without any.
func (r *Report) Mean(of func(*Outcome) time.Duration) time.Duration {
	return Mean(r.times(of))
}
