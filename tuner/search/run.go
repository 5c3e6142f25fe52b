package search

import (
	"context"
	"math/rand/v2"
	"time"

	"sandwich/roofline"
)

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

// noise returns the median A/A difference, or 0 before the first measurement.
func (r *run) noise() float64 {
	if len(r.aa) == 0 {
		return 0
	}
	return Sample{Seconds: r.aa}.Median()
}

// margin returns the relative difference below which two schedules are a near tie.
func (r *run) margin() float64 { return min(0.05, max(0.01, r.noise())) }
