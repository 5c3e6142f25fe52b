package tuner

import (
	"fmt"
	"slices"
	"time"

	"sandwich/plans"
	"sandwich/profiles"
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
func (r *Ranking) Trace() *plans.SearchTrace {
	if len(r.Ranked) == 0 {
		return nil
	}
	out := &plans.SearchTrace{Trees: r.Trees, Truncated: r.Truncated, Sections: r.Sections, Configurations: r.Configs,
		DistinctCosts: r.Costs, Simulated: len(r.Ranked), Seconds: round(r.Seconds), Load: r.Load,
		Objective: r.Objective, Assumed: r.Assumed}
	if e := r.Anchors.Error(); e != nil {
		e.Median, e.P90 = round(e.Median), round(e.P90)
		out.Errors, out.Measured = e, r.Anchors.Measured
	}
	for _, c := range r.Shown() {
		bytes := int64(0)
		for _, n := range c.Bytes {
			bytes += n
		}
		out.Keep(plans.TraceCandidate{Name: c.Names[0], TP: c.Config.TP(), PrefillPUs: c.Config.Prefill.Slice(),
			DecodePUs: c.Config.Decode.Slice(), PrefillRate: round(c.PrefillRate), DecodeRate: round(c.DecodeRate),
			Latency: round(c.Report.Mean((*replay.Outcome).Latency).Seconds()), Bytes: bytes})
	}
	return out
}

// Note returns a sentence if the objective cannot be met, or "".
func (r *Ranking) Note() string {
	most := 0.0
	for _, c := range r.Ranked {
		most = max(most, c.Report.Attainment(r.SLO))
	}
	if most > 0 {
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

// goodput sets, for the candidates that are shown, the highest rate at which 90 % of the requests
// meet the service level.
func (s *simulation) goodput(load Load) error {
	if load.Name != "" { // its times are fixed, so that there is no rate to vary
		for _, r := range s.out.Ranked {
			r.Goodput, _ = r.Report.Score(replay.Goodput, s.o.SLO)
		}
		return nil
	}
	for _, r := range s.out.Shown() {
		o := s.options(r, load)
		o.Sequential = false
		top := 4 * float64(len(load.Trace)) * float64(s.o.Parallel) / r.estimate
		n := min(len(load.Trace), paperRequests)
		rate, err := replay.HighestRate(load.Workload, n, load.Seed, r.Cost, o, s.o.SLO, attained, top/1000, top)
		if err != nil {
			return err
		}
		r.Goodput = rate
	}
	return nil
}

// attained is the fraction of requests that must meet the service level (Sandwich 7: P90).
const attained = 0.9

// NodeIDs returns the memory nodes of a machine that may hold weights, in order.
func NodeIDs(p *profiles.Profile) (out []int) {
	for _, n := range p.Machine.Memory {
		if !n.Device {
			out = append(out, n.ID)
		}
	}
	slices.Sort(out)
	return out
}
