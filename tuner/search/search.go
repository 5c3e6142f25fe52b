package search

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"sandwich/plans"
)

// DefaultSigma is the length of the sliding window; Sandwich section 6 found 16 best.
const DefaultSigma = 16

// Search finds a kernel table for the problem. The table covers every M from 1 on, its last rule is
// open, and no schedule in it was slower than the incumbent at its anchor. If the budget ends
// early, unsearched anchors keep the incumbent. If ctx ends, or the Timer fails with an error other
// than ErrUnfit, Search returns nil and the error.
func Search(ctx context.Context, p Problem, t Timer, o Options) (*Result, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	r := newRun(ctx, &p, t, o)
	s, err := newStrategy(o.Strategy, r)
	if err != nil {
		return nil, err
	}
	for i, m := range p.Anchors {
		if known, ok := p.known(m); ok {
			r.accept(known)
			continue
		}
		if !r.isolated && r.reuse() {
			r.res.Reused = m
			break
		}
		if err := r.search(s, m, len(p.Anchors)-i); err != nil {
			return nil, err
		}
	}
	r.res.Noise = r.noise()
	r.res.Trial = Sample{Seconds: r.calls}.Median()
	r.res.Rules = mergeRules(r.res.Anchors)
	return &r.res, nil
}

// Complete reports whether a search would time nothing: every anchor is known, up to one from which
// larger ones reuse a schedule.
func (p *Problem) Complete() bool {
	var found []Anchor
	for _, m := range p.Anchors {
		a, ok := p.known(m)
		if !ok {
			return settled(found)
		}
		found = append(found, a)
	}
	return true
}

func (p *Problem) known(m int) (Anchor, bool) {
	for _, a := range p.Known {
		if a.M == m {
			return a, true
		}
	}
	return Anchor{}, false
}

func newRun(ctx context.Context, p *Problem, t Timer, o Options) *run {
	if o.Sigma <= 0 {
		o.Sigma = DefaultSigma
	}
	if o.Effort.Reps == 0 {
		o.Effort = Standard
	}
	if o.Clock == nil {
		began := time.Now()
		o.Clock = func() time.Duration { return time.Since(began) }
	}
	if o.Progress == nil {
		o.Progress = func(Event) {}
	}
	if p.CacheL1 <= 0 {
		p.CacheL1 = 32 << 10
	}
	if p.CacheL2 <= 0 {
		p.CacheL2 = 512 << 10
	}
	if len(p.Ways) == 0 {
		p.Ways = Polymerizations(p.Threads)
	}
	r := &run{ctx: ctx, p: p, o: o, timer: t, isolated: PerShape(o.Strategy),
		rng: rand.New(rand.NewPCG(o.Seed, 0x5a6d))}
	r.deadline = o.Clock() + o.Budget
	return r
}

// search searches one anchor with an equal share of the time left for all remaining anchors, so
// that later anchors get what earlier ones leave.
func (r *run) search(s strategy, m, anchorsLeft int) error {
	if err := context.Cause(r.ctx); err != nil {
		return err
	}
	left := r.deadline - r.o.Clock()
	if left <= 0 {
		r.res.Cut++
		r.accept(Anchor{M: m, Schedule: r.p.Incumbent(m), Stage: "budget"})
		return nil
	}
	a := r.newAnchor(m, left/time.Duration(anchorsLeft))
	err := a.anchorIncumbents()
	if err == nil {
		err = s.anchor(a)
	}
	if err == nil {
		err = a.decide()
	}
	if err != nil && !errors.Is(err, errSpent) {
		return err
	}
	r.accept(a.outcome())
	return nil
}

// ReuseCriterion returns the early-stop criterion as a sentence for evidence and documents.
func ReuseCriterion() string {
	return fmt.Sprintf("searching ends after %d anchors in a row, at M of %d or more, that one schedule wins, "+
		"within the noise or %g %%, with GFLOP/s inside %g %%; larger M reuse it",
		reuseAnchors, reuseFrom, 100*reuseGain, 100*reuseSteady)
}

func (r *run) reuse() bool { return settled(r.res.Anchors) }

func settled(found []Anchor) bool {
	n := len(found)
	if n < reuseAnchors {
		return false
	}
	tail := found[n-reuseAnchors:]
	low, high := 0.0, 0.0
	for i, a := range tail {
		if a.M < reuseFrom || len(a.Seconds) == 0 {
			return false
		}
		if i > 0 && a.Schedule != tail[i-1].Schedule {
			return false
		}
		rate := float64(a.M) / a.Fast()
		if i == 0 || rate < low {
			low = rate
		}
		high = max(high, rate)
	}
	return high <= low*(1+reuseSteady)
}

// mergeRules returns the table of the anchors. Adjacent anchors with one schedule share a rule;
// outcome keeps the schedule of the previous anchor if it is within the noise of the best. A rule
// covers the M from after the previous anchor up to its own; the last rule is open.
func mergeRules(anchors []Anchor) []plans.Rule {
	var rules []plans.Rule
	lo := 1
	for _, a := range anchors {
		if n := len(rules); n > 0 && rules[n-1].Schedule == a.Schedule {
			rules[n-1].MHi = a.M
		} else {
			rules = append(rules, plans.Rule{MLo: lo, MHi: a.M, Schedule: a.Schedule})
		}
		lo = a.M + 1
	}
	rules[len(rules)-1].MHi = 0
	return rules
}
