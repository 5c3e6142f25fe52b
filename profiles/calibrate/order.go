package calibrate

import (
	"slices"

	"sandwich/topotree"
)

// onePerCore returns the first allowed PU of each core, within the quota.
func (f *full) onePerCore() []int {
	pus := f.coresFirst(f.profile.Machine.Allowed)
	return pus[:f.coresAmong(pus)]
}

// coresAmong returns how many PUs of a list precede the second PU of any core.
func (f *full) coresAmong(pus []int) int {
	seen := map[int]bool{}
	for i, pu := range pus {
		core := pu
		for _, o := range f.profile.Machine.Objects {
			if o.Kind == topotree.KindCore && o.CPUs.Contains(pu) {
				core = o.CPUs.First()
			}
		}
		if seen[core] {
			return i
		}
		seen[core] = true
	}
	return len(pus)
}

// oneOfEach returns the first n PUs of each object, within the quota.
func (f *full) oneOfEach(objects []topotree.Object, n int) []int {
	var out []int
	for _, o := range objects {
		pus := f.coresFirst(o.CPUs)
		out = append(out, pus[:min(n, len(pus))]...)
	}
	if q := f.profile.QuotaPUs(); q > 0 {
		out = out[:min(q, len(out))]
	}
	return out
}

// clusterObjects returns the last-level caches above L2.
func clusterObjects(m *topotree.Machine) []topotree.Object {
	var out []topotree.Object
	for _, k := range []topotree.Kind{topotree.KindL4, topotree.KindL3} {
		for _, o := range m.Objects {
			if o.Kind == k {
				out = append(out, o)
			}
		}
		if len(out) > 0 {
			break
		}
	}
	return out
}

// coresFirst orders PUs so that the first PUs of all cores precede the second ones, and limits them
// to the CPU quota.
func (f *full) coresFirst(set topotree.CPUSet) []int {
	m := f.profile.Machine
	sibling := map[int]int{}
	for _, o := range m.Objects {
		if o.Kind == topotree.KindCore {
			for i, pu := range o.CPUs.Intersect(m.Allowed).Slice() {
				sibling[pu] = i
			}
		}
	}
	pus := set.Intersect(m.Allowed).Slice()
	slices.SortStableFunc(pus, func(a, b int) int { return sibling[a] - sibling[b] })
	if q := m.QuotaPUs(); q > 0 {
		pus = pus[:min(q, len(pus))]
	}
	return pus
}

// workersOf converts PUs to worker indexes.
func (f *full) workersOf(pus []int) []int {
	out := make([]int, len(pus))
	for i, pu := range pus {
		out[i] = slices.Index(f.pool.PUs(), pu)
	}
	return out
}
