package roofline

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"

	"sandwich/profiles"
	"sandwich/topotree"
)

// Path is an instruction set (avx512, avx2, neon, go) and a data type (f32, int8, bf16, f16).
type Path struct{ ISA, Type string }

// String returns the path as ceilings are named.
func (p Path) String() string { return p.ISA + "/" + p.Type }

// peaks holds the figures of one path.
type peaks struct {
	recorded []recorded      // figures of known sets; values do not fall from a set to a superset
	weight   map[int]float64 // speed relative to the fastest class, by core; 1 if missing
	unknown  bool            // the speed of some class on this path is unknown
	cores    curve           // as a function of the weight of cores with one active PU each
	siblings curve           // additional rate of SMT siblings, as a function of their weight
	measured bool            // all points were measured
}

// Peak returns the multiply-add rate of a set of PUs in FLOP/s or OP/s. A core counts by the speed
// of its class. The rate is linear between recorded numbers of cores and constant beyond; SMT
// siblings add what they added in recorded sets. It is at least that of a recorded subset and at
// most that of a recorded superset, so that a superset never has a lower peak.
func (m *Machine) Peak(set topotree.CPUSet, path Path) Answer {
	p := m.peaks[path]
	if p == nil || !p.cores.known() || set.IsEmpty() {
		return Answer{}
	}
	low, high := 0.0, math.Inf(1)
	for _, r := range p.recorded {
		if r.set.Equal(set) {
			return r.answer()
		}
		if r.set.In(set) {
			low = math.Max(low, r.value)
		}
		if set.In(r.set) {
			high = math.Min(high, r.value)
		}
	}
	cores, siblings := m.weigh(set, p.weight)
	rate := p.cores.at(cores) + p.siblings.at(siblings)
	a := Answer{math.Max(low, math.Min(rate, high)), !p.measured || p.unknown, "by cores and their class"}
	switch {
	case cores > p.cores.last()*(1+1e-9):
		a.Assumed, a.From = true, fmt.Sprintf("constant beyond the largest measured number of cores, %.3g",
			p.cores.last())
	case siblings > p.siblings.last()*(1+1e-9):
		a.Assumed, a.From = true, "by cores and their class; no figure has so many SMT siblings"
	case p.unknown:
		a.From = "by cores, assuming equal speed of all classes"
	}
	return a
}

// weigh returns the weight of the cores of a set, and of the SMT siblings on them.
func (m *Machine) weigh(set topotree.CPUSet, weight map[int]float64) (cores, siblings float64) {
	seen := map[int]bool{}
	for pu := range set.All() {
		core := m.coreOf(pu)
		w, ok := weight[core]
		if !ok {
			w = 1
		}
		if seen[core] {
			siblings += w
			continue
		}
		seen[core] = true
		cores += w
	}
	return cores, siblings
}

// readPeaks collects the peaks of all paths of the profile.
func (m *Machine) readPeaks() {
	for path, list := range m.recordedPeaks() {
		m.peaks[path] = &peaks{recorded: list, measured: true}
	}
	singles := map[Path]map[int][]float64{} // by core
	for path, p := range m.peaks {
		singles[path] = map[int][]float64{}
		for _, r := range p.recorded {
			if r.set.Count() == 1 {
				core := m.coreOf(r.set.First())
				singles[path][core] = append(singles[path][core], r.value)
			}
		}
	}
	for path, p := range m.peaks {
		p.weight, p.unknown = m.weights(path, singles)
		m.fit(path, p)
		p.order()
	}
}

// recordedPeaks returns the figures of known sets by path. A path whose ceilings name no set has an
// empty list.
func (m *Machine) recordedPeaks() map[Path][]recorded {
	out := map[Path][]recorded{}
	for _, c := range m.profile.Ceilings {
		if c.Kind == profiles.Compute && c.Device == "" {
			path := Path{c.ISA, c.Type}
			out[path] = append(out[path], named(c.CPUs, c.Figure)...)
		}
	}
	for _, f := range m.profile.Sets {
		if f.Name == profiles.Peak {
			path := Path{f.ISA, f.Type}
			out[path] = append(out[path], named(f.CPUs, f.Figure)...)
		}
	}
	return out
}

// named returns the figure as a list, empty if it has no set or no value.
func named(set topotree.CPUSet, f profiles.Figure) []recorded {
	if set.IsEmpty() || f.Median <= 0 {
		return nil
	}
	return []recorded{{set, f.Median, f}}
}

// fit makes the curves of a path.
func (m *Machine) fit(path Path, p *peaks) {
	type point struct{ cores, siblings, rate float64 }
	var points []point
	for _, r := range p.recorded {
		cores, siblings := m.weigh(r.set, p.weight)
		points = append(points, point{cores, siblings, r.value})
		p.measured = p.measured && r.figure.Measured()
	}
	for _, c := range m.profile.Ceilings { // ceilings of a number of PUs, one on each core first
		ours := c.Kind == profiles.Compute && c.Device == "" && (Path{c.ISA, c.Type}) == path
		if ours && c.CPUs.IsEmpty() && c.Median > 0 {
			cores := float64(c.PUs)
			if m.cores > 0 {
				cores = min(cores, float64(m.cores))
			}
			points = append(points, point{cores, float64(c.PUs) - cores, c.Median})
			p.measured = p.measured && c.Measured()
		}
	}
	for _, q := range points {
		if q.siblings == 0 {
			p.cores.add(q.cores, q.rate)
		}
	}
	if !p.cores.known() {
		for _, q := range points {
			p.cores.add(q.cores, q.rate)
		}
	}
	last, slope := p.cores.last(), p.cores.at(p.cores.last())/p.cores.last()
	for _, q := range points {
		if q.cores > last { // only recorded with siblings: assume at most linear scaling
			p.cores.add(q.cores, math.Min(q.rate, slope*q.cores))
		}
	}
	p.cores.rise()
	for _, q := range points {
		if q.siblings > 0 {
			p.siblings.add(q.siblings, math.Max(0, q.rate-p.cores.at(q.cores)))
		}
	}
	p.siblings.rise()
}

// order raises the value of each set to those of its subsets, since a lower value was disturbed.
func (p *peaks) order() {
	slices.SortStableFunc(p.recorded, func(a, b recorded) int { return cmp.Compare(a.set.Count(), b.set.Count()) })
	for i := range p.recorded {
		r := &p.recorded[i]
		for _, part := range p.recorded {
			if part.set.In(r.set) {
				r.value = math.Max(r.value, part.value)
			}
		}
	}
}

// weights returns the speeds of cores relative to the fastest class: by the figure of the core,
// else by those of its class, each with one active PU. If the path lacks figures of some class, the
// path with figures of most classes is used, since clock rates affect all paths. unknown reports
// that speeds of the path itself are missing.
func (m *Machine) weights(path Path, singles map[Path]map[int][]float64) (weight map[int]float64, unknown bool) {
	covered := func(p Path) int {
		classes := map[int]bool{}
		for core := range singles[p] {
			classes[m.class[core]] = true
		}
		return len(classes)
	}
	from := path
	byName := func(a, b Path) int { return cmp.Compare(a.String(), b.String()) }
	for _, other := range slices.SortedFunc(maps.Keys(singles), byName) {
		if covered(other) > covered(from) {
			from = other
		}
	}
	unknown = len(m.classes) > 1 && (from != path || covered(from) < len(m.classes))
	own, sums := map[int]float64{}, map[int][]float64{}
	for core, rates := range singles[from] {
		own[core] = mean(rates)
		sums[m.class[core]] = append(sums[m.class[core]], own[core])
	}
	fastest := 0.0
	for _, rates := range sums {
		fastest = math.Max(fastest, mean(rates))
	}
	weight = map[int]float64{}
	if fastest <= 0 {
		return weight, unknown
	}
	for pu := range m.class {
		core := m.coreOf(pu)
		if rate, ok := own[core]; ok {
			weight[core] = rate / fastest
		} else if rates := sums[m.class[core]]; len(rates) > 0 {
			weight[core] = mean(rates) / fastest
		}
	}
	return weight, unknown
}

// mean sums in ascending order, so that the result does not depend on the order of PUs.
func mean(values []float64) float64 {
	sum := 0.0
	for _, v := range slices.Sorted(slices.Values(values)) {
		sum += v
	}
	return sum / float64(len(values))
}
