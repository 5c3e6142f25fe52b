package tuner

import (
	"context"
	"errors"
	"time"

	"sandwich/plans"
	"sandwich/tuner/candidates"
	"sandwich/tuner/ranking"
	"sandwich/tuner/replay"
)

// A ranking before a race replays few requests, because the budget is for the measurements that
// follow.
const (
	fewRequests  = 5
	someRequests = 20
	shortBudget  = time.Minute
)

// Bounds of the time of the anchors: a fraction of the budget and a maximum.
const (
	anchorsShare  = 0.03
	maxAnchorTime = 6 * time.Second
)

// rank runs the pipeline up to the race, as `tune --simulate` does.
func rank(ctx context.Context, o *Options, shape plans.ModelShape) (*ranking.Ranking, error) {
	load := o.Ranking.Load
	if load.Trace == nil {
		if load.Requests = someRequests; o.Run.Budget < shortBudget {
			load.Requests = fewRequests
		}
		if load.Workload.Name == "" {
			var err error
			if load.Workload, err = replay.Named(replay.Usual); err != nil {
				return nil, err
			}
			load.Seed, load.Sequential = o.Run.Seed, true
		}
	}
	p := o.Subject.Plan
	ro := ranking.Options{Profile: o.Subject.Profile, Shape: shape, Compute: p.Compute, KV: p.KV, ISA: p.ISA,
		TP: p.TP, Threads: p.Threads, Load: load, Objective: o.Ranking.Objective, SLO: o.Ranking.SLO,
		TopK: o.Ranking.TopK}
	if o.Run.Budget >= shortBudget {
		within := min(maxAnchorTime, time.Duration(anchorsShare*float64(o.Run.Budget)))
		var err error
		if ro.Anchors, err = ranking.Anchors(ctx, ro, within); err != nil {
			return nil, err
		}
	}
	r, err := ranking.Simulate(ctx, ro)
	if errors.Is(err, candidates.ErrNoFit) { // its kernels can still be tuned by shape, on the default plan's PUs
		return &ranking.Ranking{}, nil
	}
	return r, err
}
