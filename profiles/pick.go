package profiles

import (
	"cmp"
	"slices"

	"sandwich/topotree"
)

// PULoad is the fraction of time for which other processes use each PU, by PU index. A PU that
// another instance of this program reserves counts 1 more, whether it is busy or not.
type PULoad map[int]float64

// idleLoad is the load below which a PU counts as idle.
const idleLoad = 0.25

// level rounds a load to a step, so that noise does not decide between PUs of similar load.
func level(load float64) int {
	if load < idleLoad {
		return 0
	}
	return int(load / idleLoad)
}

// LeavesChoice reports whether n workers (0: one per core) can run on distinct sets of PUs.
func (p *Profile) LeavesChoice(n int) bool {
	n, candidates := p.candidates(n)
	return n > 0 && n < len(candidates)
}

// candidates returns the PUs for n workers, best first: one of each core, or all PUs if there are
// more workers than cores. For n = 0 it returns the number of cores within the quota.
func (p *Profile) candidates(n int) (int, []rankedPU) {
	ranked := p.rankedPUs()
	cores := firstOfCores(ranked)
	if n == 0 {
		n = cores
	}
	if q := p.QuotaPUs(); q > 0 {
		n = min(n, q)
	}
	if n <= cores {
		ranked = ranked[:cores]
	}
	return n, ranked
}

// firstOfCores returns the number of PUs that are the first of their core. They precede all others.
func firstOfCores(ranked []rankedPU) int {
	n := 0
	for n < len(ranked) && ranked[n].sibling == 0 {
		n++
	}
	return n
}

// PickPUs returns PUs for n workers (0: one per core): the best ones if they are idle, else
// idle ones that are close to each other in the tree, else those with the least load.
func (p *Profile) PickPUs(n int, load PULoad) topotree.CPUSet {
	n, candidates := p.candidates(n)
	levels := p.levels(load)
	first := candidates[:min(n, len(candidates))]
	if !slices.ContainsFunc(first, func(c rankedPU) bool { return levels[c.pu] > 0 }) {
		return setOf(first)
	}
	slices.SortStableFunc(candidates, func(a, b rankedPU) int { return cmp.Compare(levels[a.pu], levels[b.pu]) })
	if idle := p.closestIdle(candidates, levels, n); idle != nil {
		candidates = idle
	}
	return setOf(candidates[:min(n, len(candidates))])
}

// setOf returns the set of ranked PUs.
func setOf(ranked []rankedPU) topotree.CPUSet {
	pus := make([]int, len(ranked))
	for i, r := range ranked {
		pus[i] = r.pu
	}
	return topotree.NewCPUSet(pus...)
}

// ByLoad returns PUs sorted by load. PUs with similar load keep their order.
func (p *Profile) ByLoad(pus []int, load PULoad) []int {
	levels := p.levels(load)
	out := slices.Clone(pus)
	slices.SortStableFunc(out, func(a, b int) int { return cmp.Compare(levels[a], levels[b]) })
	return out
}

// levels returns the load level of each allowed PU. Half of the load of another PU on the same core
// counts, too.
func (p *Profile) levels(load PULoad) map[int]int {
	out := map[int]int{}
	for pu := range p.Machine.Allowed.All() {
		out[pu] = level(load[pu])
	}
	for _, o := range p.Machine.Objects {
		if o.Kind != topotree.KindCore || o.CPUs.Count() < 2 {
			continue
		}
		for pu := range o.CPUs.Intersect(p.Machine.Allowed).All() {
			for twin := range o.CPUs.All() {
				if twin != pu {
					out[pu] = max(out[pu], level(load[twin]/2))
				}
			}
		}
	}
	return out
}

// closestIdle returns the idle candidates in the smallest part of the tree that has n of them with
// the fastest core type, or nil.
func (p *Profile) closestIdle(candidates []rankedPU, levels map[int]int, n int) []rankedPU {
	var idle topotree.CPUSet
	for _, c := range candidates {
		if levels[c.pu] == 0 && c.sibling == 0 && c.coreType == 0 {
			idle = idle.Union(topotree.NewCPUSet(c.pu))
		}
	}
	var best topotree.CPUSet
	p.Machine.Tree.Walk(func(node *topotree.Node, _ int) bool {
		enough := node.CPUs.Intersect(idle).Count() >= n
		if enough && (best.IsEmpty() || node.CPUs.Count() < best.Count()) {
			best = node.CPUs
		}
		return enough
	})
	if best.IsEmpty() {
		return nil
	}
	var out []rankedPU
	for _, c := range candidates {
		if best.Contains(c.pu) && idle.Contains(c.pu) {
			out = append(out, c)
		}
	}
	return out
}

// SparePU returns the PU to which a worker on pu moves if another process uses that PU: an idle PU
// of the same core type, on a core without PUs in used, as close as possible in the tree. ok is
// false if there is none.
func (p *Profile) SparePU(pu int, used, allowed []int, load PULoad) (to int, ok bool) {
	taken := topotree.NewCPUSet(append(slices.Clone(used), pu)...)
	for _, o := range p.Machine.Objects {
		if o.Kind == topotree.KindCore && o.CPUs.Intersects(taken) {
			taken = taken.Union(o.CPUs)
		}
	}
	may := topotree.NewCPUSet(allowed...).Intersect(p.Machine.Allowed).Minus(taken)
	levels := p.levels(load)
	types := map[int]int{}
	var idle []rankedPU
	for _, r := range p.rankedPUs() {
		types[r.pu] = r.coreType
		if may.Contains(r.pu) && levels[r.pu] == 0 {
			idle = append(idle, r)
		}
	}
	idle = slices.DeleteFunc(idle, func(r rankedPU) bool { return r.coreType != types[pu] })
	if len(idle) == 0 {
		return 0, false
	}
	p.Machine.Tree.Walk(func(n *topotree.Node, _ int) bool { // deeper nodes are closer
		if !n.CPUs.Contains(pu) {
			return false
		}
		if inside := slices.IndexFunc(idle, func(r rankedPU) bool { return n.CPUs.Contains(r.pu) }); inside >= 0 {
			to, ok = idle[inside].pu, true
		}
		return true
	})
	return to, ok
}
