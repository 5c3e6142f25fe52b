package search

import (
	"errors"
	"math"
	"slices"

	"sandwich/internal/num"
	"sandwich/plans"
)

// scaleUp is the scale-up-and-out strategy of Roller: bottom-up, in fixed steps. It repeats a
// micro-kernel along the dimension that gains most until a cache level is saturated. The result is
// the step of the next level; the result of the last level is distributed to the cores unchanged.
type scaleUp struct{}

func (scaleUp) anchor(a *anchor) error {
	groups := groupTiles(a.p.Kernels, a.m, a.columns)
	if n := a.o.Effort.Tiles; n > 0 {
		groups = groups[:min(n, len(groups))]
	}
	ranked, err := a.screenTiles(groups)
	if err != nil {
		return err
	}
	const levels = 3
	for _, k := range tilesOf(ranked, a.o.Effort.Starts) {
		s := a.space(k)
		cur, err := a.time(s.tile(), "scale up", screening)
		if err != nil {
			return err
		}
		for level := 0; level < levels && cur != nil; level++ {
			if cur, err = a.saturate(s, cur); err != nil {
				return err
			}
		}
	}
	return nil
}

// screenTiles times every tile as a slice of its own.
func (a *anchor) screenTiles(groups []tileGroup) ([]*entry, error) {
	var out []*entry
	for _, g := range groups {
		e, err := a.time(a.space(g.variants[0]).tile(), "screening", screening)
		if err != nil {
			return nil, err
		}
		if e != nil {
			out = append(out, e)
		}
	}
	sortFastest(out)
	return out, nil
}

// saturate repeats the program cur along the dimension that gains most, in steps of its initial
// size, until nothing gains.
func (a *anchor) saturate(s space, cur *entry) (*entry, error) {
	var step [dims]int
	for d := range dims {
		step[d] = s.size(cur.schedule, d)
	}
	for {
		best := cur
		for d := range dims {
			e, err := a.time(s.with(cur.schedule, d, s.size(cur.schedule, d)+step[d]), "scale up", searching)
			if err != nil {
				return nil, err
			}
			if e != nil && e.fast() < best.fast() {
				best = e
			}
		}
		if best == cur {
			return cur, nil
		}
		cur = best
	}
}

// costModel is the strategy of DietCode and MikPoly: it measures a few micro-kernels of fixed shape
// once and chooses every schedule by a model of these measurements.
type costModel struct {
	kernels []MicroKernel
	flop    []float64 // FLOP/s of one thread in each of them
}

const (
	fixedKernels  = 4
	sliceOverhead = 1e-6 // seconds to take a slice and to start its kernel
)

func (c *costModel) anchor(a *anchor) error {
	if c.kernels == nil {
		if err := c.measure(a); err != nil {
			return err
		}
	}
	best, smallest := plans.Schedule{}, math.Inf(1)
	for i, k := range c.kernels {
		s := newSpace(a.p, k, a.m, a.columns)
		for _, cand := range s.grid() {
			if t := c.predict(s, cand, c.flop[i]); t < smallest {
				best, smallest = cand, t
			}
		}
	}
	if math.IsInf(smallest, 1) {
		return nil // no kernel could be measured, or none fits
	}
	_, err := a.time(best, "cost model", deciding)
	return err
}

// measure times the fixed micro-kernels at the first anchor.
func (c *costModel) measure(a *anchor) error {
	largest := a.p.Anchors[len(a.p.Anchors)-1]
	for _, g := range groupTiles(a.p.Kernels, largest, a.columns) {
		if len(c.kernels) == fixedKernels {
			break
		}
		k := g.variants[0]
		s := a.space(k)
		e, err := a.time(s.guess(a.p.CacheL1, a.p.CacheL2), "screening", searching)
		if err != nil {
			return err
		}
		if e != nil {
			c.kernels = append(c.kernels, k)
			c.flop = append(c.flop, 2*float64(a.rows)*float64(a.columns)*
				float64(a.p.Key.K)/e.fast()/float64(a.p.Threads))
		}
	}
	return nil
}

// predict returns the time of the busiest thread: waves of equal slices at the kernel's speed.
func (c *costModel) predict(s space, cand plans.Schedule, flop float64) float64 {
	waves := num.CeilDiv(s.slices(cand), s.threads)
	passes := num.CeilDiv(s.key.K, s.size(cand, dimK))
	work := 2 * float64(min(cand.BM, s.m)) * float64(cand.BN) * float64(s.key.K)
	return float64(waves) * (work/flop + float64(passes)*sliceOverhead)
}

// grid returns 64 slices: four sizes of each dimension, spread geometrically from one tile to the
// whole.
func (s space) grid() []plans.Schedule {
	var out []plans.Schedule
	base := s.tile()
	sizes := func(unit, whole int) []int {
		ratio := math.Max(1, float64(whole)/float64(unit))
		var v []int
		for i := range 4 {
			v = append(v, int(float64(unit)*math.Pow(ratio, float64(i)/3)))
		}
		return v
	}
	for _, bk := range sizes(4*s.unitK, s.key.K) {
		for _, bn := range sizes(base.BN, max(base.BN, s.columns/s.threads)) {
			for _, bm := range sizes(base.BM, max(base.BM, s.m)) {
				c := s.with(s.with(s.with(base, dimK, bk), dimN, bn), dimM, bm)
				if s.parallel(c) && !slices.Contains(out, c) {
					out = append(out, c)
				}
			}
		}
	}
	return out
}

// random draws legal schedules until the anchor's share of the budget or the maximum number of
// draws is used up.
type random struct{}

const randomDraws = 1000

func (random) anchor(a *anchor) error {
	var fit []MicroKernel
	for _, k := range a.p.Kernels {
		if k.fits(a.m, a.columns) {
			fit = append(fit, k)
		}
	}
	if len(fit) == 0 {
		return nil
	}
	for range randomDraws {
		if a.spent() > finetuneEnds {
			return nil
		}
		if _, err := a.time(a.draw(fit), "random", searching); err != nil {
			return err
		}
	}
	return nil
}

// draw returns a random schedule whose slice is uniform in the logarithm of each dimension. It also
// draws the prefetch distance and packing, which other strategies try at the end.
func (a *anchor) draw(fit []MicroKernel) plans.Schedule {
	k := fit[a.rng.IntN(len(fit))]
	if k.Spec.Prefetch > 0 {
		k.Spec.Prefetch = prefetches[a.rng.IntN(len(prefetches))]
	}
	s := a.space(k)
	c := s.tile()
	for d, whole := range [dims]int{dimK: s.key.K, dimN: s.columns, dimM: s.m} {
		unit := s.size(c, dim(d))
		ratio := math.Max(1, float64(whole)/float64(unit))
		c = s.with(c, dim(d), int(float64(unit)*math.Pow(ratio, a.rng.Float64())))
	}
	c = s.scheme(c, a.p.Ways[a.rng.IntN(len(a.p.Ways))])
	c.Pack = a.rng.IntN(2) == 1 && s.packs(c)
	return c
}

// static is the strategy of a compiler of static shapes for one M: a fixed number of trials on the
// whole weight.
type static struct{ random }

// StaticTrials is the number of trials of static tuning for each M.
const StaticTrials = randomDraws

func (s static) anchor(a *anchor) error {
	a.columns = a.widest(a.m)
	return s.random.anchor(a)
}

// exhaustive times the whole grid: the 32 micro-kernels that screen best, 64 slices of each, all
// polymerization schemes. One call on a narrow weight eliminates most. The best are timed again,
// interleaved with the choice of the default heuristic, and the best of these more often, because
// the fastest of 32 equally fast schedules is biased by selection.
type exhaustive struct{}

const (
	exhaustiveKernels = 32
	exhaustiveBest    = 32   // programs that are timed again
	exhaustiveLast    = 8    // of these, to the end
	exhaustiveRounds  = 8    // of the last ones
	gridSlices        = 64   // maximum per micro-kernel
	gridEnds          = 0.75 // part of an M's share at which the grid ends, to leave time for its best
)

func (exhaustive) anchor(a *anchor) error {
	ranked, err := a.screen(groupTiles(a.p.Kernels, a.m, a.columns), exhaustiveKernels, screeningEnds)
	if err != nil {
		return err
	}
	kernels := kernelsOf(ranked, exhaustiveKernels)
	if narrow := columnUnit * a.p.Threads; narrow < a.columns && a.m >= 64 {
		a.columns = narrow
		a.forget()
	}
	if err := a.sweep(kernels); err != nil {
		return err
	}
	choice, err := a.choice()
	if err != nil {
		return err
	}
	a.reference = choice
	for _, stage := range []struct{ best, rounds int }{{exhaustiveBest, 3}, {exhaustiveLast, exhaustiveRounds}} {
		list := a.ranked()
		list = list[:min(stage.best, len(list))]
		if choice != nil {
			list = append(list, choice)
		}
		if err := a.again(stage.rounds, list...); err != nil {
			return err
		}
	}
	return nil
}

// sweep times the grids of all micro-kernels in rounds, so that a budget that ends early has timed
// each of them equally often, and a disturbance affects all of them: first the slices of the
// default heuristic, then the others in an order drawn by the seed.
func (a *anchor) sweep(kernels []MicroKernel) error {
	order := a.rng.Perm(gridSlices)
	grids := make([][]plans.Schedule, len(kernels))
	for i, k := range kernels {
		grids[i] = a.space(k).grid()
	}
	for round := range gridSlices + 1 {
		for i, k := range kernels {
			s := a.space(k)
			c := s.guess(a.p.CacheL1, a.p.CacheL2)
			if round > 0 {
				n := order[round-1]
				if n >= len(grids[i]) {
					continue
				}
				c = grids[i][n]
			}
			for _, w := range a.p.Ways {
				if a.spent() > gridEnds {
					a.res.Unfinished = append(a.res.Unfinished, a.m)
					return nil
				}
				if _, err := a.time(s.scheme(c, w), "exhaustive", sweeping); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// choice times the choice of the default heuristic on the columns of the sweep, or returns nil if
// it does not run. It is recorded for readers of the journal and takes no part in the search.
func (a *anchor) choice() (*entry, error) {
	s := a.p.Incumbent(a.m)
	sample, err := a.call(s, Limit{MinReps: 1, MaxReps: 1})
	if errors.Is(err, ErrUnfit) {
		return nil, nil
	}
	return &entry{schedule: s, sample: sample}, err
}

// forget drops the samples of another number of columns, because samples of different widths are
// not comparable.
func (a *anchor) forget() {
	clear(a.entries)
	a.list, a.best, a.incumbent = nil, nil, nil
}
