package ranking

import (
	"fmt"
	"time"

	"sandwich/internal/num"
	"sandwich/plans/evidence"
	"sandwich/tuner/replay"
)

// shown is the number of candidates that a ranking shows, in addition to those that are always
// included.
const shown = 10

// Shown returns the best candidates and those that are always included, best first.
func (r *Ranking) Shown() (out []*Ranked) {
	for i, c := range r.Ranked {
		if i < max(shown, r.TopK) || c.Config.Origin.Always != "" {
			out = append(out, c)
		}
	}
	return out
}

// Trace returns the ranking as evidence records it, or nil if nothing could be ranked.
func (r *Ranking) Trace() *evidence.Trace {
	if len(r.Ranked) == 0 {
		return nil
	}
	out := &evidence.Trace{Trees: r.Trees, Truncated: r.Truncated, Sections: r.Sections, Configurations: r.Configs,
		DistinctCosts: r.Costs, Simulated: len(r.Ranked), Seconds: num.Significant(r.Seconds), Load: r.Load,
		Objective: r.Objective, Assumed: r.Assumed}
	if e := r.Anchors.Error(); e != nil {
		e.Median, e.P90 = num.Significant(e.Median), num.Significant(e.P90)
		out.Errors, out.Measured = e, r.Anchors.Measured
	}
	for _, c := range r.Shown() {
		bytes := int64(0)
		for _, n := range c.Bytes {
			bytes += n
		}
		out.Keep(evidence.TraceCandidate{Name: c.Names[0], TP: c.Config.TP(), PrefillPUs: c.Config.Prefill,
			DecodePUs: c.Config.Decode, PrefillRate: num.Significant(c.PrefillRate),
			DecodeRate: num.Significant(c.DecodeRate),
			Latency:    num.Significant(c.Report.Mean((*replay.Outcome).Latency).Seconds()), Bytes: bytes})
	}
	return out
}

// Note returns a sentence if the objective cannot be met, or "".
func (r *Ranking) Note() string {
	largest := 0.0
	for _, c := range r.Ranked {
		largest = max(largest, c.Report.Attainment(r.SLO))
	}
	if largest > 0 {
		return ""
	}
	first, each := time.Duration(0), time.Duration(0)
	for _, c := range r.Ranked {
		if t := c.Report.TTFT(0.5); first == 0 || t < first {
			first = t
		}
		if t := c.Report.TPOT(0.5); each == 0 || t < each {
			each = t
		}
	}
	return fmt.Sprintf("no configuration meets a first token in %s and each further one in %s: the best that can be "+
		"had are medians of %s and %s, and the ranking goes by latency", r.SLO.TTFT, r.SLO.TPOT,
		first.Round(time.Millisecond), each.Round(100*time.Microsecond))
}
