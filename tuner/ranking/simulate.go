package ranking

import (
	"cmp"
	"context"
	"slices"
	"time"

	"sandwich/runtime/exec"
	"sandwich/tuner/candidates"
)

// A ranking replays the best candidates by estimate and all that are always included: this many, or
// fewer for a trace of many tokens.
const (
	maxReplays     = 200
	minReplays     = 20
	replayForwards = 6e6
)

// Simulate ranks every service configuration of a machine by replaying a trace through the serving
// scheduler with predicted costs (Sandwich 5.3). It estimates all configurations by the sum of
// their requests' forwards, and replays the best and those that are always included.
func Simulate(ctx context.Context, o Options) (*Ranking, error) {
	began := time.Now()
	if err := o.complete(); err != nil {
		return nil, err
	}
	plan, profile, notes, err := o.untuned()
	if err != nil {
		return nil, err
	}
	cache, err := exec.CacheBytes(o.Shape, plan.KV, o.blocks(), o.Parallel, plan.Chunk)
	if err != nil {
		return nil, err
	}
	so := candidates.Options{TP: o.TP, Threads: o.Threads, Cache: cache, Alike: o.Shape.Pooled()}
	space, err := candidates.Enumerate(profile, o.Shape, so)
	if err != nil {
		return nil, err
	}
	predictor, err := candidates.NewPredictor(profile, plan, o.Model, so)
	if err != nil {
		return nil, err
	}
	if o.Anchors.known() {
		predictor.Calibrate(o.Anchors.Types)
	}
	s := &simulation{ctx: ctx, o: o, predictor: predictor, chunk: plan.Chunk,
		out: &Ranking{Trees: space.Trees, Truncated: space.Truncated, Sections: space.Sections,
			Configs: len(space.Configs), Assumed: append(notes, candidates.Assumptions(o.Anchors.near())...),
			Objective: o.Objective,
			SLO:       o.SLO, TopK: o.TopK, Anchors: o.Anchors}}
	if err := s.rank(space); err != nil {
		return nil, err
	}
	if err := s.classes(profile, plan); err != nil {
		return nil, err
	}
	s.out.Seconds = time.Since(began).Seconds()
	return s.out, nil
}

// rank estimates all configurations, joins those of equal cost, and replays the best.
func (s *simulation) rank(space *candidates.Space) error {
	list, err := s.estimate(space.Configs)
	if err != nil {
		return err
	}
	s.out.Costs = len(list)
	base := list[0]
	list = s.refine(space, list)
	slices.SortStableFunc(list, func(a, b *Ranked) int { return cmp.Compare(a.estimate, b.estimate) })
	n := max(minReplays, min(maxReplays, int(replayForwards)/s.o.Load.forwards()))
	limit := list[min(n, len(list))-1].estimate
	list = slices.DeleteFunc(list, func(r *Ranked) bool { return r.Config.Origin.Always == "" && r.estimate > limit })
	load := s.o.Load.under(base.estimate)
	s.out.Load = load.String()
	for i, r := range list {
		if err := context.Cause(s.ctx); err != nil {
			return err
		}
		if s.o.Progress != nil {
			s.o.Progress(i, len(list))
		}
		if err := s.replay(r, load); err != nil {
			return err
		}
	}
	slices.SortStableFunc(list, func(a, b *Ranked) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.estimate, b.estimate))
	})
	s.out.Ranked, s.out.Near = list, space.Neighbors(list[0].Config)
	s.baseline()
	return s.goodput(load)
}
