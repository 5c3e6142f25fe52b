package load

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"sandwich/runtime/sched"
	"sandwich/tuner/replay"
)

// Names of the goals for two classes of requests.
const (
	GoalOpen    = "open"
	GoalBacklog = "backlog"
	GoalQuanta  = "quanta"
	GoalHalt    = "halt"
)

// Goals returns all goals.
func Goals() []string { return []string{GoalOpen, GoalBacklog, GoalQuanta, GoalHalt} }

// Figure is one measurement for a goal. Its JSON is stable. Times are in seconds.
type Figure struct {
	Goal     string  `json:"goal"`
	Policy   string  `json:"policy"`
	What     string  `json:"what"`
	Alone    float64 `json:"alone,omitempty"` // 0: Mixed itself is compared with the bound
	Mixed    float64 `json:"mixed"`
	Measured float64 `json:"measured"`        // Mixed divided by Alone, or Mixed
	Bound    float64 `json:"bound,omitempty"` // 0: the policy has no bound
	Least    bool    `json:"at_least,omitempty"`
	Rate     bool    `json:"tokens_per_second,omitempty"` // the unit is tokens per second
	Samples  int     `json:"samples"`

	// Figures of several seeds: the figures above are means, and Samples is a sum. Seeds is the
	// number of seeds; the others are the extremes of Measured and the number of seeds that missed
	// the bound.
	Seeds   int     `json:"seeds,omitempty"`
	Lowest  float64 `json:"lowest,omitempty"`
	Highest float64 `json:"highest,omitempty"`
	Missed  int     `json:"seeds_missed,omitempty"`
}

// Met reports whether the bound holds in the run of every seed.
func (f *Figure) Met() bool {
	if f.Seeds > 1 {
		return f.Missed == 0
	}
	return f.Bound == 0 || f.Measured == f.Bound || f.Measured > f.Bound == f.Least
}

// Stage is the setup for measuring goals.
type Stage struct {
	// Open returns an engine under a policy, and a function that closes it. A request that has not
	// progressed for the duration aging is treated as reactive.
	Open     func(policy string, aging time.Duration) (target Target, closed func(), err error)
	Policies []string // compared by backlog and open; goals apply to sched.DefaultPolicy
	Trace    replay.Trace
	Seed     uint64
	Parallel int           // requests that run at the same time
	Context  int           // maximum tokens of a request
	Aging    time.Duration // for runs in which requests should not age at once
	During   time.Duration // of measurements without arrivals
	Note     func(text string)

	texts atomic.Uint64 // number of texts requested
}

// fresh returns the seed of prompts that no engine has seen, so that its prefix cache does not
// match.
func (s *Stage) fresh() uint64 { return s.Seed + s.texts.Add(1)<<20 }

// Measure runs the measurement of a goal.
func (s *Stage) Measure(ctx context.Context, goal string) ([]Figure, error) {
	var figures []Figure
	var err error
	switch goal {
	case GoalOpen:
		figures, err = s.open(ctx)
	case GoalBacklog:
		figures, err = s.backlog(ctx)
	case GoalQuanta:
		figures, err = s.quanta(ctx)
	case GoalHalt:
		figures, err = s.halt(ctx)
	default:
		err = fmt.Errorf("unknown goal %.40q; choose among %s", goal, strings.Join(Goals(), ", "))
	}
	for i := range figures {
		f := &figures[i]
		if f.Goal, f.Measured = goal, f.Mixed; f.Alone > 0 {
			f.Measured = f.Mixed / f.Alone
		}
	}
	return figures, err
}

// with opens an engine, warms it up, calls a function with it and closes it.
func (s *Stage) with(ctx context.Context, policy string, aging time.Duration, do func(Target) error) error {
	target, closed, err := s.Open(policy, aging)
	if err != nil {
		return err
	}
	defer closed()
	r := replay.Request{Prompt: max(1, min(600, s.Context-16)), Output: min(16, s.Context/2)}
	p := r
	p.Class = sched.Proactive
	if _, err = Offer(ctx, replay.Trace{r, p}, s.fresh(), target); err != nil {
		return err
	}
	return do(target)
}

// bound returns b for the policy with goals, otherwise 0.
func bound(policy string, b float64) float64 {
	if policy == sched.DefaultPolicy {
		return b
	}
	return 0
}

// only returns the requests of a class.
func only(t replay.Trace, c sched.Class) (out replay.Trace) {
	for _, r := range t {
		if r.Class == c {
			out = append(out, r)
		}
	}
	return out
}

// Offered load as a fraction of the capacity of fcfs, and the bounds of the latency of reactive
// requests and of the total throughput.
const (
	openLoad                          = 0.9
	maxOpenMean, maxOpenP90, minOfAll = 1.8, 2.0, 0.95
)

// open offers the arrivals at a fraction of the capacity of fcfs. It first offers all at once to
// fcfs to measure how long it takes. It then spreads them over that time divided by the fraction:
// the reactive requests alone, and all under each policy.
func (s *Stage) open(ctx context.Context) (out []Figure, err error) {
	last := s.Trace[len(s.Trace)-1].At
	if last == 0 {
		return nil, fmt.Errorf("goal %s: all requests arrive at once, so there is no rate to change", GoalOpen)
	}
	var whole, alone *Run
	err = s.with(ctx, "fcfs", s.Aging, func(by Target) error {
		at := slices.Clone(s.Trace)
		for i := range at {
			at[i].At = 0
		}
		whole, err = Offer(ctx, at, s.fresh(), by)
		return err
	})
	if err != nil {
		return nil, err
	}
	over := time.Duration(float64(whole.Elapsed) / openLoad)
	t := s.Trace.Faster(last.Seconds() / over.Seconds())
	reactive := only(t, sched.Reactive)
	if len(reactive) == 0 {
		return nil, fmt.Errorf("goal %s: there is no reactive request; raise --reactive", GoalOpen)
	}
	s.Note(fmt.Sprintf("fcfs serves %d requests in %.1f s (%.1f tokens/s): they arrive over %.1f s", len(t),
		whole.Elapsed.Seconds(), whole.Throughput(), over.Seconds()))
	policies := slices.DeleteFunc(slices.Clone(s.Policies), func(p string) bool { return p == "fcfs" })
	rates := map[string]float64{}
	// The reactive requests alone under the first policy; all under each and fcfs.
	for i, policy := range append(policies, "fcfs") {
		err := s.with(ctx, policy, s.Aging, func(by Target) error {
			if i == 0 {
				if alone, err = Offer(ctx, reactive, s.fresh(), by); err != nil {
					return err
				}
			}
			run, err := Offer(ctx, t, s.fresh(), by)
			if err == nil {
				rates[policy] = run.Throughput()
				out = append(out, latencies(policy, alone.Report, run.Of(sched.Reactive))...)
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	for _, policy := range policies {
		out = append(out, Figure{Policy: policy, What: "tokens/s of all, to those of fcfs", Alone: rates["fcfs"],
			Mixed: rates[policy], Bound: bound(policy, minOfAll), Least: true, Rate: true, Samples: len(t)})
	}
	return out, nil
}

func latencies(policy string, alone, mixed *replay.Report) []Figure {
	n, latency := len(mixed.Outcomes), (*replay.Outcome).Latency
	return []Figure{{Policy: policy, What: "reactive latency, mean", Alone: alone.Mean(latency).Seconds(),
		Mixed: mixed.Mean(latency).Seconds(), Bound: bound(policy, maxOpenMean), Samples: n},
		{Policy: policy, What: "reactive latency, P90", Alone: alone.Latency(0.9).Seconds(),
			Mixed: mixed.Latency(0.9).Seconds(), Bound: bound(policy, maxOpenP90), Samples: n}}
}
