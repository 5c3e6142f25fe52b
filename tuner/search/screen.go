package search

import (
	"cmp"
	"slices"
)

// screen times one or two calls of every tile at the slice of the default heuristic with its
// prefetch, then the other prefetch and, with the better of both, all other variants of the best
// tiles. It returns the schedules that ran, fastest first, and takes at most the given part of the
// anchor's share.
func (a *anchor) screen(groups []tileGroup, variants int, until float64) ([]*entry, error) {
	var heads []*entry
	byTile := map[tileKey]tileGroup{}
	for _, g := range groups {
		if a.spent() > until/2 && len(heads) > 0 {
			break
		}
		e, err := a.timeGuess(g.variants[0])
		if err != nil {
			return heads, err
		}
		if e != nil {
			heads = append(heads, e)
			byTile[g.key] = g
		}
	}
	sortFastest(heads)
	all := slices.Clone(heads)
	for _, h := range heads[:min(variants, len(heads))] {
		more, err := a.screenVariants(h, byTile[h.kernel().tile()], until)
		all = append(all, more...)
		if err != nil {
			return all, err
		}
	}
	sortFastest(all)
	return all, nil
}

// screenVariants times the head of a tile with the other prefetch, and then the variants with the
// better of both.
func (a *anchor) screenVariants(head *entry, g tileGroup, until float64) (out []*entry, err error) {
	best := head
	try := func(k MicroKernel) error {
		if a.spent() > until {
			return nil
		}
		e, err := a.timeGuess(k)
		if e != nil {
			out = append(out, e)
			if e.fast() < best.fast() {
				best = e
			}
		}
		return err
	}
	for _, k := range g.variants[1:] {
		if k.Spec.Spread != head.schedule.Kernel.Spread &&
			k.Spec.WithPrefetch(0) == head.schedule.Kernel.WithPrefetch(0) {
			if err := try(k); err != nil {
				return out, err
			}
		}
	}
	spread := best.schedule.Kernel.Spread
	for _, k := range g.variants[1:] {
		if k.Spec.Spread == spread && k.Spec.WithPrefetch(0) != head.schedule.Kernel.WithPrefetch(0) {
			if err := try(k); err != nil {
				return out, err
			}
		}
	}
	return out, nil
}

func (a *anchor) timeGuess(k MicroKernel) (*entry, error) {
	return a.time(a.space(k).guess(a.p.CacheL1, a.p.CacheL2), "screening", screening)
}

func sortFastest(list []*entry) {
	slices.SortStableFunc(list, func(x, y *entry) int { return cmp.Compare(x.fast(), y.fast()) })
}

// tilesOf returns the micro-kernels of entries, in order, one of each tile, at most n.
func tilesOf(list []*entry, n int) []MicroKernel {
	var out []MicroKernel
	for _, e := range list {
		k := e.kernel()
		if len(out) < n && !slices.ContainsFunc(out, func(o MicroKernel) bool { return o.tile() == k.tile() }) {
			out = append(out, k)
		}
	}
	return out
}

// kernelsOf returns the distinct micro-kernels of entries, in order, at most n.
func kernelsOf(list []*entry, n int) []MicroKernel {
	var out []MicroKernel
	for _, e := range list {
		k := e.kernel()
		if !slices.Contains(out, k) && len(out) < n {
			out = append(out, k)
		}
	}
	return out
}

func (e *entry) kernel() MicroKernel { return MicroKernel{e.schedule.Kernel, e.schedule.Widen} }
