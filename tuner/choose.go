package tuner

import (
	"context"
	"errors"
	"fmt"
	"time"

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
	anchorsShare = 0.03
	anchorsMost  = 6 * time.Second
)

// ranking runs the pipeline up to the race, as `tune --simulate` does.
func (o *Options) ranking(ctx context.Context) (*ranking.Ranking, error) {
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
	so := ranking.Options{Profile: o.Profile, Shape: shape, Compute: o.Compute, KV: o.KV, ISA: o.ISA,
		TP: o.TP, Threads: o.Threads, Load: load, Objective: o.Objective, SLO: o.SLO, TopK: o.TopK}
	if o.Budget >= shortBudget {
		within := min(anchorsMost, time.Duration(anchorsShare*float64(o.Budget)))
		if so.Anchors, err = ranking.Anchors(ctx, so, within); err != nil {
			return nil, err
		}
	}
	r, err := ranking.Simulate(ctx, so)
	if errors.Is(err, candidates.ErrNoFit) { // its kernels can still be tuned by shape, on the default plan's PUs
		return &ranking.Ranking{}, nil
	}
	return r, err
}

// chosen returns the only set if the user has chosen the PUs.
func (t *partition) chosen() []ranking.ActiveSet {
	return []ranking.ActiveSet{{Name: fmt.Sprintf("--threads %d", t.o.Threads), PUs: t.def.Prefill.PUs}}
}
