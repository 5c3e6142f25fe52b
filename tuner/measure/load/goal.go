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

// What two classes are to see, by the name of the run that measures it.
const (
	GoalOpen    = "open"
	GoalBacklog = "backlog"
	GoalQuanta  = "quanta"
	GoalHalt    = "halt"
)

// Goals lists them.
func Goals() []string { return []string{GoalOpen, GoalBacklog, GoalQuanta, GoalHalt} }

// Figure is one thing that was measured for a goal; its JSON is stable. Times are seconds.
type Figure struct {
	Goal     string  `json:"goal"`
	Policy   string  `json:"policy"`
	What     string  `json:"what"`
	Alone    float64 `json:"alone,omitempty"` // 0: Mixed is held against the bound itself
	Mixed    float64 `json:"mixed"`
	Measured float64 `json:"measured"`        // Mixed by Alone, or Mixed
	Bound    float64 `json:"bound,omitempty"` // 0: the policy is bound to nothing
	Least    bool    `json:"at_least,omitempty"`
	Rate     bool    `json:"tokens_per_second,omitempty"` // no time
	Samples  int     `json:"samples"`

	// Of several seeds, of which the figures above are means, and samples a sum: how many there
	// are, the extremes of Measured, and in how many the bound was missed.
	Seeds   int     `json:"seeds,omitempty"`
	Lowest  float64 `json:"lowest,omitempty"`
	Highest float64 `json:"highest,omitempty"`
	Missed  int     `json:"seeds_missed,omitempty"`
}

// Met says whether the bound holds, in the run of every seed.
func (f *Figure) Met() bool {
	if f.Seeds > 1 {
		return f.Missed == 0
	}
	return f.Bound == 0 || f.Measured == f.Bound || f.Measured > f.Bound == f.Least
}

// Stage is what goals are measured on.
type Stage struct {
	// Open gives an engine of its own under a policy, and closes it. Who has not moved for the time
	// of aging has aged.
	Open     func(policy string, aging time.Duration) (target Target, closed func(), err error)
	Policies []string // that backlog and open compare; the goals are those of sched.DefaultPolicy
	Trace    replay.Trace
	Seed     uint64
	Parallel int           // requests that run at once
	Context  int           // tokens of a request
	Aging    time.Duration // of who has not to age at once
	During   time.Duration // of what has no arrivals
	Note     func(text string)

	texts atomic.Uint64 // that were asked for
}

// fresh is the seed of prompts that no engine has seen, so that none is read from its cache.
func (s *Stage) fresh() uint64 { return s.Seed + s.texts.Add(1)<<20 }

// Measure runs what a goal asks for.
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
		err = fmt.Errorf("there is no goal %.40q; choose among %s", goal, strings.Join(Goals(), ", "))
	}
	for i := range figures {
		f := &figures[i]
		if f.Goal, f.Measured = goal, f.Mixed; f.Alone > 0 {
			f.Measured = f.Mixed / f.Alone
		}
	}
	return figures, err
}

// with opens an engine for what is done with it, warm.
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

// bound is that of the policy whose goals these are.
func bound(policy string, b float64) float64 {
	if policy == sched.DefaultPolicy {
		return b
	}
	return 0
}

// only keeps the requests of a class.
func only(t replay.Trace, c sched.Class) (out replay.Trace) {
	for _, r := range t {
		if r.Class == c {
			out = append(out, r)
		}
	}
	return out
}

// Of fcfs's capacity so much comes, and the bounds of what reactive requests then see and of what
// all get done.
const (
	openLoad                              = 0.9
	mostOpenMean, mostOpenP90, leastOfAll = 1.8, 2.0, 0.95
)

// open offers the arrivals at a share of what fcfs can do: first all at once to fcfs, which says
// how long it takes, then, over that time by the share, the reactive ones alone, and all under each
// policy.
func (s *Stage) open(ctx context.Context) (out []Figure, err error) {
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
	t := s.Trace.Faster(s.Trace[len(s.Trace)-1].At.Seconds() / over.Seconds())
	reactive := only(t, sched.Reactive)
	if len(reactive) == 0 {
		return nil, fmt.Errorf("goal %s: no reactive request comes", GoalOpen)
	}
	s.Note(fmt.Sprintf("fcfs serves %d requests in %.1f s (%.1f tokens/s): they come over %.1f s", len(t),
		whole.Elapsed.Seconds(), whole.Throughput(), over.Seconds()))
	policies := slices.DeleteFunc(slices.Clone(s.Policies), func(p string) bool { return p == "fcfs" })
	rates := map[string]float64{}
	for i, policy := range append(policies, "fcfs") { // beside each other: what the first sees alone, and fcfs
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
			Mixed: rates[policy], Bound: bound(policy, leastOfAll), Least: true, Rate: true, Samples: len(t)})
	}
	return out, nil
}

func latencies(policy string, alone, mixed *replay.Report) []Figure {
	n, latency := len(mixed.Outcomes), (*replay.Outcome).Latency
	return []Figure{{Policy: policy, What: "reactive latency, mean", Alone: alone.Mean(latency).Seconds(),
		Mixed: mixed.Mean(latency).Seconds(), Bound: bound(policy, mostOpenMean), Samples: n},
		{Policy: policy, What: "reactive latency, P90", Alone: alone.Latency(0.9).Seconds(),
			Mixed: mixed.Latency(0.9).Seconds(), Bound: bound(policy, mostOpenP90), Samples: n}}
}
