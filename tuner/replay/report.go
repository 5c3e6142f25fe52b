package replay

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"sandwich/internal/num"
	"sandwich/runtime/sched"
)

// Report is the result of a replay.
type Report struct {
	Outcomes []Outcome
	Elapsed  time.Duration // from the first arrival to the last token
	Busy     time.Duration // time in which forwards ran
	Prefills int           // forwards of prefill
	Decodes  int
	Switches int // between the phases
	Sched    sched.Stats
}

func (r *replay) report() *Report {
	out := &Report{Outcomes: r.out, Busy: r.busy, Prefills: r.prefills, Decodes: r.decodes, Switches: r.switches,
		Sched: r.sched.Stats()}
	out.Elapsed = r.now - r.out[0].At
	return out
}

// Finished returns the number of requests that got all their tokens.
func (r *Report) Finished() int {
	n := 0
	for i := range r.Outcomes {
		if r.Outcomes[i].Finished() {
			n++
		}
	}
	return n
}

// Throughput returns the generated tokens per second.
func (r *Report) Throughput() float64 {
	n := 0
	for i := range r.Outcomes {
		n += r.Outcomes[i].Tokens
	}
	if r.Elapsed <= 0 {
		return 0
	}
	return float64(n) / r.Elapsed.Seconds()
}

// TTFT returns quantile q of the time to the first token over the finished requests, or 0 without
// any.
func (r *Report) TTFT(q float64) time.Duration { return r.Quantile(q, (*Outcome).TTFT) }

// TPOT returns quantile q of the time per output token.
func (r *Report) TPOT(q float64) time.Duration { return r.Quantile(q, (*Outcome).TPOT) }

// Latency returns quantile q of the time from arrival to the last token.
func (r *Report) Latency(q float64) time.Duration {
	return r.Quantile(q, (*Outcome).Latency)
}

// times returns a time of each finished request.
func (r *Report) times(of func(*Outcome) time.Duration) (x []time.Duration) {
	for i := range r.Outcomes {
		if r.Outcomes[i].Finished() {
			x = append(x, of(&r.Outcomes[i]))
		}
	}
	return x
}

// Quantile returns the smallest of some times that a fraction q of them do not exceed, or 0 without
// any. It sorts x.
func Quantile(x []time.Duration, q float64) time.Duration {
	slices.Sort(x)
	return num.Quantile(x, q)
}

// Mean returns the mean of some times, or 0 without any.
func Mean(x []time.Duration) (sum time.Duration) {
	for _, d := range x {
		sum += d
	}
	return sum / time.Duration(max(1, len(x)))
}

// SLO is a service level: the bounds of a request's times.
type SLO struct{ TTFT, TPOT time.Duration }

// Attainment returns the fraction of all requests, including rejected ones, that met the service
// level.
func (r *Report) Attainment(s SLO) float64 {
	met := 0
	for i := range r.Outcomes {
		if o := &r.Outcomes[i]; o.Finished() && o.TTFT() <= s.TTFT && o.TPOT() <= s.TPOT {
			met++
		}
	}
	return float64(met) / float64(max(1, len(r.Outcomes)))
}

// Objectives that a configuration can be ranked by.
const (
	Latency    = "latency"    // mean time per request
	Throughput = "throughput" // tokens per second
	Attainment = "attainment" // fraction of requests within the service level
	Goodput    = "goodput"    // requests per second within the service level
)

// Objectives returns all objectives.
func Objectives() []string { return []string{Latency, Throughput, Attainment, Goodput} }

// DefaultSLO is the service level if none is given.
var DefaultSLO = SLO{TTFT: 2 * time.Second, TPOT: 100 * time.Millisecond}

// Score returns a number by which reports of one trace are ranked; larger is better.
func (r *Report) Score(objective string, s SLO) (float64, error) {
	switch objective {
	case Latency:
		if mean := r.Mean((*Outcome).Latency).Seconds(); mean > 0 {
			return 1 / mean, nil
		}
		return 0, nil
	case Throughput:
		return r.Throughput(), nil
	case Attainment:
		return r.Attainment(s), nil
	case Goodput:
		return r.met(s), nil
	}
	return 0, fmt.Errorf("unknown objective %q; choose one of %s", objective, strings.Join(Objectives(), ", "))
}

// met returns the requests per second within the service level.
func (r *Report) met(s SLO) float64 {
	if r.Elapsed <= 0 {
		return 0
	}
	return r.Attainment(s) * float64(len(r.Outcomes)) / r.Elapsed.Seconds()
}

// HighestRate returns the highest rate between lo and hi, in requests per second, at which a
// fraction share of the requests meets the service level. It bisects to one percent and returns 0
// if lo misses it.
func HighestRate(w Workload, n int, seed uint64, c Cost, o Options, s SLO, share, lo, hi float64) (float64, error) {
	attains := func(rate float64) (bool, error) {
		r, err := Run(w.Poisson(n, rate, seed), c, o)
		if err != nil {
			return false, err
		}
		return r.Attainment(s) >= share, nil
	}
	if !(lo > 0 && hi > lo) {
		return 0, fmt.Errorf("the rates %g to %g are not a range; use 0 < lo < hi", lo, hi)
	}
	for _, edge := range []float64{lo, hi} {
		ok, err := attains(edge)
		if err != nil {
			return 0, err
		}
		if ok == (edge == hi) {
			if ok {
				return hi, nil
			}
			return 0, nil
		}
	}
	for hi/lo > 1.01 {
		mid := (lo + hi) / 2
		ok, err := attains(mid)
		if err != nil {
			return 0, err
		}
		if ok {
			lo = mid
		} else {
			hi = mid
		}
	}
	return lo, nil
}
