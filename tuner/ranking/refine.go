package ranking

import (
	"cmp"
	"slices"

	"sandwich/tuner/candidates"
)

// A refinement starts from the best few candidates and continues while a step gains at least
// refineGain. Smaller gains are noise of the profile's figures, which a search among many neighbors
// would follow.
const (
	refineFrom  = 3
	refineSteps = 12
	refineGain  = 0.02
)

// refine walks from the best candidates to better neighbors, by the estimate, and adds the
// configurations on the way.
func (s *simulation) refine(space *candidates.Space, list []*Ranked) []*Ranked {
	seen := map[string]bool{}
	for _, r := range list {
		seen[r.Cost.Signature()] = true
	}
	starts := slices.Clone(list)
	slices.SortStableFunc(starts, func(a, b *Ranked) int { return cmp.Compare(a.estimate, b.estimate) })
	for _, at := range starts[:min(refineFrom, len(starts))] {
		for range refineSteps {
			if s.ctx.Err() != nil {
				return list
			}
			next := s.bestOf(space.Neighbors(at.Config))
			if next == nil || next.estimate > at.estimate*(1-refineGain) {
				break
			}
			if at = next; !seen[next.Cost.Signature()] {
				seen[next.Cost.Signature()] = true
				list = append(list, next)
			}
		}
	}
	return list
}
