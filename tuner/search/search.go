package search

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"sandwich/plans"
	"sandwich/roofline"
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

// run is the state of one search.
type run struct {
	ctx      context.Context
	p        *Problem
	o        Options
	timer    Timer
	rng      *rand.Rand
	deadline time.Duration
	isolated bool          // anchors do not use each other's results
	aa       []float64     // A/A differences, one per anchor
	calls    []float64     // seconds of each call of the Timer
	window   []MicroKernel // winners, most recent last
	last     roofline.Regime
	res      Result
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

// accept records the result of an anchor and moves the window.
func (r *run) accept(x Anchor) {
	r.res.Anchors = append(r.res.Anchors, x)
	if len(x.Seconds) > 0 {
		r.window = append(r.window, MicroKernel{x.Schedule.Kernel, x.Schedule.Widen})
		if len(r.window) > r.o.Sigma {
			r.window = r.window[1:]
		}
	}
	r.last = r.regime(x.M)
}

func (r *run) regime(m int) roofline.Regime {
	if r.p.Ceiling.Bandwidth <= 0 || len(r.p.Ceiling.Targets) == 0 {
		return roofline.ComputeBound
	}
	return r.p.Ceiling.Regime(r.p.work(m))
}

// Schedule reuse, the early-stop criterion: the last reuseAnchors anchors, all at M of at least
// reuseFrom, had one best schedule within the noise or reuseGain, and their GFLOP/s differ by less
// than reuseSteady. A larger M only adds slices of the same kind.
const (
	reuseAnchors = 3
	reuseFrom    = 128
	reuseSteady  = 0.05
	reuseGain    = 0.02 // smaller gains over the previous anchor's schedule do not count
)

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

// noise returns the median A/A difference, or 0 before the first measurement.
func (r *run) noise() float64 {
	if len(r.aa) == 0 {
		return 0
	}
	return Sample{Seconds: r.aa}.Median()
}

// margin returns the relative difference below which two schedules are a near tie.
func (r *run) margin() float64 { return min(0.05, max(0.01, r.noise())) }

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
