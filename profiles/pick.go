package profiles

import (
	"cmp"
	"slices"

	"sandwich/topotree"
)

// PULoad is the share of time for which other processes use PUs, by PU. 1 is all of it. A PU that
// another instance of this program holds counts 1 more, whether it is busy or not.
type PULoad map[int]float64

// idleLoad is the load below which a PU counts as idle: what the system itself does there.
const idleLoad = 0.25

// level sorts loads into steps: noise must not decide between PUs of about the same load.
func level(load float64) int {
	if load < idleLoad {
		return 0
	}
	return int(load / idleLoad)
}

// LeavesChoice reports whether n workers, 0 for one a core, can be on different sets of PUs.
func (p *Profile) LeavesChoice(n int) bool {
	n, candidates := p.candidates(n)
	return n > 0 && n < len(candidates)
}

// candidates returns the PUs of which n workers take some, the best first: one of each core, or all
// where there are more workers than cores. n is 0 for one worker a core, within the quota.
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

// firstOfCores counts the PUs that are the first of their core; they come first.
func firstOfCores(ranked []rankedPU) int {
	n := 0
	for n < len(ranked) && ranked[n].sibling == 0 {
		n++
	}
	return n
}

// PickPUs returns PUs for n workers, 0 for one a core, sorted: the best ones where these are idle,
// else idle ones that are close to each other in the tree, else those with the least load.
func (p *Profile) PickPUs(n int, load PULoad) []int {
	n, candidates := p.candidates(n)
	levels := p.levels(load)
	first := candidates[:min(n, len(candidates))]
	if !slices.ContainsFunc(first, func(c rankedPU) bool { return levels[c.pu] > 0 }) {
		return sortedPUs(first)
	}
	slices.SortStableFunc(candidates, func(a, b rankedPU) int { return cmp.Compare(levels[a.pu], levels[b.pu]) })
	if idle := p.closestIdle(candidates, levels, n); idle != nil {
		candidates = idle
	}
	return sortedPUs(candidates[:min(n, len(candidates))])
}

func sortedPUs(ranked []rankedPU) []int {
	out := make([]int, len(ranked))
	for i, r := range ranked {
		out[i] = r.pu
	}
	slices.Sort(out)
	return out
}

// ByLoad returns PUs with those of the least load first, and in their order among equal loads.
func (p *Profile) ByLoad(pus []int, load PULoad) []int {
	levels := p.levels(load)
	out := slices.Clone(pus)
	slices.SortStableFunc(out, func(a, b int) int { return cmp.Compare(levels[a], levels[b]) })
	return out
}

// levels returns the level of each allowed PU: of its own load, or of half of that of another PU of
// its core, with which it shares the core.
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

// closestIdle returns the idle candidates of the smallest part of the tree that has n of them of
// the fastest core type; nil where no part has.
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

// SparePU returns the PU to which a worker on pu moves when another process uses that: an idle one
// of the same core type, on a core where none of used is, and as close as possible in the tree. ok
// is false where there is none.
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
	p.Machine.Tree.Walk(func(n *topotree.Node, _ int) bool { // each deeper part is closer
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
