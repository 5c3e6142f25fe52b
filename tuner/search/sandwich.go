package search

import (
	"slices"

	"sandwich/microkernel"
)

// fastStartFinetune is the search of Sandwich section 6. Fast start expands slices by doubling,
// finetune tries every polymerization scheme in fine steps, and a sliding window of winners limits
// the micro-kernels after sigma shapes.
type fastStartFinetune struct {
	searched int
}

// Parts of an anchor's share at which the stages end.
const (
	screeningEnds = 0.45
	fastStartEnds = 0.70
	finetuneEnds  = 0.92
)

func (f *fastStartFinetune) anchor(a *anchor) error {
	groups, variants := f.candidates(a)
	f.searched++
	ranked, err := a.screen(groups, variants, screeningEnds)
	if err != nil {
		return err
	}
	for _, k := range tilesOf(ranked, a.o.Effort.Starts) {
		if err := a.fastStart(a.space(k), fastStartEnds); err != nil {
			return err
		}
	}
	return a.finetune(finetuneEnds)
}

// candidates returns all micro-kernels for the first sigma shapes and at a crossed roofline regime,
// and the window's winners elsewhere.
func (f *fastStartFinetune) candidates(a *anchor) ([]tileGroup, int) {
	e := a.o.Effort
	crossed := len(a.res.Anchors) > 0 && a.regime(a.m) != a.last
	if f.searched >= a.o.Sigma && crossed {
		a.res.Reopened = append(a.res.Reopened, a.m)
	}
	if f.searched < a.o.Sigma || crossed || len(a.window) == 0 {
		groups := groupTiles(a.p.Kernels, a.m, a.columns)
		if e.Tiles > 0 {
			groups = groups[:min(e.Tiles, len(groups))]
		}
		return groups, e.Variants
	}
	var recent []MicroKernel
	for _, k := range slices.Backward(a.window) {
		if !slices.Contains(recent, k) {
			recent = append(recent, k)
		}
	}
	var groups []tileGroup
	for _, k := range recent {
		groups = append(groups, tileGroup{key: k.tile(), variants: []MicroKernel{k}})
	}
	return groups, 0
}

// fastStart expands the slice of a micro-kernel from one tile. It doubles the dimensions one after
// another; a doubling without gain is undone and ends the dimension. It stops before fewer slices
// than threads would remain.
func (a *anchor) fastStart(s space, until float64) error {
	cur, err := a.time(s.tile(), "fast start", screening)
	if err != nil || cur == nil {
		return err
	}
	growing := [dims]bool{true, true, true}
	for slices.Contains(growing[:], true) {
		for d := range dims {
			if !growing[d] {
				continue
			}
			if a.spent() > until {
				return nil
			}
			next := s.with(cur.schedule, d, 2*s.size(cur.schedule, d))
			if next == cur.schedule || !s.parallel(next) {
				growing[d] = false
				continue
			}
			e, err := a.time(next, "fast start", screening)
			if err != nil {
				return err
			}
			if growing[d] = e != nil && e.fast() < cur.fast(); growing[d] {
				cur = e
			}
		}
	}
	return nil
}

// finetune distributes the best programs so far over the threads by every scheme, and improves each
// by fine steps along the dimension that gains most. The results are added to the list.
func (a *anchor) finetune(until float64) error {
	const programs = 2
	bases := a.ranked()
	bases = bases[:min(programs, len(bases))]
	for i, b := range bases {
		s := a.space(b.kernel())
		for j, w := range a.p.Ways {
			// All programs and schemes share the remaining time evenly.
			done := float64(i*len(a.p.Ways)+j+1) / float64(len(bases)*len(a.p.Ways))
			end := fastStartEnds + (until-fastStartEnds)*done
			cur, err := a.time(s.scheme(b.schedule, w), "finetune", searching)
			if err != nil {
				return err
			}
			if cur == nil || cur.fast() > 1.1*a.best.fast() {
				continue
			}
			if err := a.fineSteps(s, cur, end); err != nil {
				return err
			}
		}
	}
	if err := a.tryPrefetches(until); err != nil {
		return err
	}
	return a.tryPacking(until)
}

// tryPacking tries to copy the activations of the best program's slices to contiguous rows if more
// than one register tile reads them.
func (a *anchor) tryPacking(until float64) error {
	ranked := a.ranked()
	if len(ranked) == 0 || a.spent() > until {
		return nil
	}
	next := ranked[0].schedule
	if next.Pack || !a.space(ranked[0].kernel()).packs(next) {
		return nil
	}
	next.Pack = true
	_, err := a.time(next, "finetune", searching)
	return err
}

// tryPrefetches varies the prefetch of the best program: its distance, and whether it is spread
// over all row tiles.
func (a *anchor) tryPrefetches(until float64) error {
	ranked := a.ranked()
	if len(ranked) == 0 || ranked[0].schedule.Widen {
		return nil
	}
	base := ranked[0].schedule
	kernels := []microkernel.Spec{base.Kernel.WithSpread()}
	for _, bytes := range prefetches {
		kernels = append(kernels, base.Kernel.WithPrefetch(bytes))
	}
	for _, k := range kernels {
		if a.spent() > until {
			return nil
		}
		next := base
		next.Kernel = k
		if !next.Kernel.ISA.Generates() || next.Kernel.Validate() != nil {
			continue
		}
		if _, err := a.time(next, "finetune", searching); err != nil {
			return err
		}
	}
	return nil
}

// fineSteps climbs from one program: of the steps by about a quarter up and down each dimension it
// takes the one that gains most, and continues along it until there is no more gain.
func (a *anchor) fineSteps(s space, cur *entry, end float64) error {
	for range a.o.Effort.Fine {
		var best *entry
		var along dim
		up := false
		for d := range dims {
			for _, rise := range []bool{true, false} {
				if a.spent() > end {
					return nil
				}
				e, err := a.step(s, cur, d, rise)
				if err != nil {
					return err
				}
				if e != nil && (best == nil || e.fast() < best.fast()) {
					best, along, up = e, d, rise
				}
			}
		}
		better, err := a.gains(best, cur)
		if err != nil || !better {
			return err
		}
		cur = best
		for a.spent() <= end {
			e, err := a.step(s, cur, along, up)
			if err != nil {
				return err
			}
			better, err := a.gains(e, cur)
			if err != nil {
				return err
			}
			if !better {
				break
			}
			cur = e
		}
	}
	return nil
}

// step times the neighbor of a program along one dimension, or returns nil at the limit.
func (a *anchor) step(s space, cur *entry, d dim, up bool) (*entry, error) {
	unit := [dims]int{dimK: s.unitK, dimN: cur.schedule.Kernel.NR, dimM: cur.schedule.Kernel.MR}[d]
	v := s.size(cur.schedule, d)
	by := max(unit, v/4/unit*unit)
	if !up {
		by = -by
	}
	if v+by < unit {
		return nil, nil
	}
	next := s.with(cur.schedule, d, v+by)
	if next == cur.schedule || !s.parallel(next) {
		return nil, nil
	}
	return a.time(next, "finetune", searching)
}
