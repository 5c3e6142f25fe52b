package replay

import (
	"time"

	"sandwich/runtime/sched"
)

// NewReport is the report of outcomes that were not simulated but seen.
func NewReport(outcomes []Outcome, elapsed, busy time.Duration, s sched.Stats) *Report {
	return &Report{Outcomes: outcomes, Elapsed: elapsed, Busy: busy, Sched: s}
}

// Of is the report of one class alone; what the machine did is that of all.
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

// Normalized is the time from arrival to the last token by the tokens of prompt and answer
// (Agent.xpu section 6.1).
func (o *Outcome) Normalized() time.Duration {
	return (o.End - o.At) / time.Duration(max(1, o.Prompt+o.Tokens))
}

// Pending is the time from arrival to the first forward, 0 where that is not known.
func (o *Outcome) Pending() time.Duration { return max(0, o.Started-o.At) }

// Latency is the time from arrival to the last token.
func (o *Outcome) Latency() time.Duration { return o.End - o.At }

// Quantile is quantile q of a time over the requests that finished, 0 without any.
func (r *Report) Quantile(q float64, of func(*Outcome) time.Duration) time.Duration {
	return Quantile(r.times(of), q)
}

// Mean is the mean of a time over the requests that finished, 0 without any.
func (r *Report) Mean(of func(*Outcome) time.Duration) time.Duration {
	return Mean(r.times(of))
}
