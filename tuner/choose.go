package tuner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"sandwich/plans"
	"sandwich/tuner/candidates"
	"sandwich/tuner/replay"
)

// activeSet is one choice of the active PUs of a phase.
type activeSet struct {
	Name string // of the configuration that it comes from: "all PUs", "remove(1,5) cut at numa, TP 8"
	PUs  plans.PUSet
}

// A ranking before a race replays few requests, because the budget is for the measurements that
// follow.
const (
	fewRequests  = 5
	someRequests = 20
	shortBudget  = time.Minute
)

// Bounds of the time of the anchors: a fraction of the budget and a maximum.
const (
	anchorsShare = 0.03
	anchorsMost  = 6 * time.Second
)

// ranking runs the pipeline up to the race, as `tune --simulate` does.
func (o *Options) ranking(ctx context.Context) (*Ranking, error) {
	shape, err := shapeOf(*o)
	if err != nil {
		return nil, err
	}
	load := o.Load
	if load.Trace == nil {
		if load.Requests = someRequests; o.Budget < shortBudget {
			load.Requests = fewRequests
		}
		if load.Workload.Name == "" {
			if load.Workload, err = replay.Named(replay.Usual); err != nil {
				return nil, err
			}
			load.Seed, load.Sequential = o.Seed, true
		}
	}
	so := SimulateOptions{Profile: o.Profile, Shape: shape, Compute: o.Compute, KV: o.KV, ISA: o.ISA,
		TP: o.TP, Threads: o.Threads, Load: load, Objective: o.Objective, SLO: o.SLO, TopK: o.TopK}
	if o.Budget >= shortBudget {
		within := min(anchorsMost, time.Duration(anchorsShare*float64(o.Budget)))
		if so.Anchors, err = Anchors(ctx, so, within); err != nil {
			return nil, err
		}
	}
	r, err := Simulate(ctx, so)
	if errors.Is(err, candidates.ErrNoFit) { // its kernels can still be tuned by shape, on the default plan's PUs
		return &Ranking{}, nil
	}
	return r, err
}

// sets returns the PUs of a phase in the best configurations with the given number of ranks, best
// first, and the sets of their neighbors, at most most, that are not among them.
func (r *Ranking) sets(phase, ranks, most int) (best, near []activeSet) {
	pusOf := func(c *candidates.Config) plans.PUSet {
		return [][]int{prefill: c.Prefill.Slice(), decode: c.Decode.Slice()}[phase]
	}
	has := func(list []activeSet, pus plans.PUSet) bool {
		return slices.ContainsFunc(list, func(s activeSet) bool { return slices.Equal(s.PUs, pus) })
	}
	for _, c := range r.Ranked {
		if pus := pusOf(c.Config); c.Config.TP() == ranks && !has(best, pus) {
			best = append(best, activeSet{c.Names[0], pus})
		}
	}
	for _, c := range r.Near {
		pus := pusOf(c)
		if c.TP() == ranks && len(near) < most && !has(best[:min(most, len(best))], pus) && !has(near, pus) {
			near = append(near, activeSet{c.Name(), pus})
		}
	}
	return best, near
}

// chosen returns the only set if the user has chosen the PUs.
func (t *partition) chosen() []activeSet {
	return []activeSet{{fmt.Sprintf("--threads %d", t.o.Threads), t.def.Prefill.PUs}}
}
