package ranking

import (
	"fmt"
	"slices"

	"sandwich/runtime/phase"
	"sandwich/topotree"
	"sandwich/tuner/candidates"
)

// ActiveSet is one choice of the active PUs of a phase.
type ActiveSet struct {
	Name string // of the configuration that it comes from: "all PUs", "remove(1,5) cut at numa, TP 8"
	PUs  topotree.CPUSet
}

// Sets returns the PUs of a phase in the best configurations with the given number of ranks, best
// first, and the sets of their neighbors, at most limit, that are not among them.
func (r *Ranking) Sets(p phase.Phase, ranks, limit int) (best, near []ActiveSet) {
	pusOf := func(c *candidates.Config) topotree.CPUSet {
		if p == phase.Decode {
			return c.Decode
		}
		return c.Prefill
	}
	has := func(list []ActiveSet, pus topotree.CPUSet) bool {
		return slices.ContainsFunc(list, func(s ActiveSet) bool { return s.PUs.Equal(pus) })
	}
	for _, c := range r.Ranked {
		if pus := pusOf(c.Config); c.Config.TP() == ranks && !has(best, pus) {
			best = append(best, ActiveSet{c.Names[0], pus})
		}
	}
	for _, c := range r.Near {
		pus := pusOf(c)
		if c.TP() == ranks && len(near) < limit && !has(best[:min(limit, len(best))], pus) && !has(near, pus) {
			near = append(near, ActiveSet{c.Name(), pus})
		}
	}
	return best, near
}

// hopeless is the simulated time relative to the best from which a partition is not raced. It
// allows for the error of predicted forwards.
const hopeless = 1.35

// SeveralRanks returns the best candidates of each partition into several ranks that rank near the
// best: those among the first topK, and the best ones with one rank more and one rank fewer.
func (r *Ranking) SeveralRanks(topK int) (out []*Ranked) {
	seen := map[string]bool{}
	degrees := map[int]bool{} // adjacent to that of the best
	if len(r.Ranked) > 0 {
		best, above, below := r.Ranked[0].Config.TP(), 0, 0
		for _, c := range r.Ranked {
			if tp := c.Config.TP(); tp > best && (above == 0 || tp < above) {
				above = tp
			} else if tp < best && tp > below {
				below = tp
			}
		}
		degrees[above], degrees[below] = true, true
	}
	for i, c := range r.Ranked {
		near := degrees[c.Config.TP()]
		key := fmt.Sprint(c.Config.Ranks)
		if c.Config.TP() == 1 || seen[key] || i >= topK && !near || c.Score*hopeless < r.Ranked[0].Score {
			continue
		}
		seen[key] = true
		degrees[c.Config.TP()] = false
		out = append(out, c)
	}
	return out[:min(len(out), topK)]
}
