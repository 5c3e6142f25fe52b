package search

import (
	"cmp"
	"slices"
)

// screen times one call or two of every tile at the slice that the caches suggest, then of the variants of the best tiles, and returns what ran, fastest first. It takes at most the
// given part of the anchor's share.
func (a *anchor) screen(groups []tileGroup, variants int, until float64) ([]*entry, error) {
	var heads []*entry
	byTile := map[*entry]tileGroup{}
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
			byTile[e] = g
		}
	}
	sortFastest(heads)
	all := slices.Clone(heads)
	for _, h := range heads[:min(variants, len(heads))] {
		for _, k := range byTile[h].variants[1:] {
			if a.spent() > until {
				break
			}
			e, err := a.timeGuess(k)
			if err != nil {
				return all, err
			}
			if e != nil && !slices.Contains(all, e) {
				all = append(all, e)
			}
		}
	}
	sortFastest(all)
	return all, nil
}

func (a *anchor) timeGuess(k MicroKernel) (*entry, error) {
	return a.time(newSpace(a.p, k, a.m, a.columns).guess(a.p.CacheL1, a.p.CacheL2), "screening", screening)
}

func sortFastest(list []*entry) {
	slices.SortStableFunc(list, func(x, y *entry) int { return cmp.Compare(x.fast(), y.fast()) })
}

// kernelsOf lists the distinct micro-kernels of entries, in order, at most n.
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
