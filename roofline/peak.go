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

// Path is an arithmetic on an instruction set: avx512 (avx2, neon, go) and f32 (int8, bf16, f16).
type Path struct{ ISA, Type string }

// String is the path as ceilings are named.
func (p Path) String() string { return p.ISA + "/" + p.Type }

// peaks is what is known of one path.
type peaks struct {
	recorded []recorded      // of sets that are named; values rise from a set to a larger one around it
	weight   map[int]float64 // by core its speed over that of the fastest class; 1 where it is missing
	unlike   bool            // there are classes whose speed on this path is not known
	cores    curve           // over the weight of cores with one PU at work each
	siblings curve           // what more the further PUs of a core give, over their weight
	measured bool            // all points were
}

// Peak is the multiply-add rate of a set of PUs in FLOP/s or OP/s. A core counts by the speed of
// its class. The rate is linear between the recorded numbers of such cores and flat beyond; SMT
// siblings add what they added where they were recorded. It is never below that of a recorded part
// of the set, and never above that of a recorded set around it, so that the peak of a superset is
// never below that of a subset.
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
	a := Answer{math.Max(low, math.Min(rate, high)), !p.measured || p.unlike, "by cores and their class"}
	switch {
	case cores > p.cores.last()*(1+1e-9):
		a.Assumed, a.From = true, fmt.Sprintf("flat beyond the %.3g cores that a figure is of", p.cores.last())
	case siblings > p.siblings.last()*(1+1e-9):
		a.Assumed, a.From = true, "by cores and their class; of so many SMT siblings there is no figure"
	case p.unlike:
		a.From = "by cores, of unlike classes taken as equal"
	}
	return a
}

// weigh is the weight of the cores of a set, and of the further PUs that work on these cores.
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

// readPeaks collects the peaks of every path of the profile.
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
		p.weight, p.unlike = m.weights(path, singles)
		m.fit(path, p)
		p.order()
	}
}

// recordedPeaks lists the figures of named sets by path; the path of a ceiling without a named set
// has an empty list.
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
	for _, c := range m.profile.Ceilings { // of a number of PUs, one on each core first
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
		if q.cores > last { // more cores were recorded with siblings alone, which add to cores that scale at best
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

// order lets values rise from a set to a larger one around it: what disturbed the measurement of
// the larger set did not disturb that of its part.
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

// weights are the speeds of cores over that of the fastest class: by the figure of the core itself,
// else by those of its class, both with one PU at work. Where this path has no figure of some
// class, the path that has figures of most classes speaks for it, since a slow clock slows them
// all.
func (m *Machine) weights(path Path, singles map[Path]map[int][]float64) (weight map[int]float64, unlike bool) {
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
	unlike = len(m.classes) > 1 && (from != path || covered(from) < len(m.classes))
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
		return weight, unlike
	}
	for pu := range m.class {
		core := m.coreOf(pu)
		if rate, ok := own[core]; ok {
			weight[core] = rate / fastest
		} else if rates := sums[m.class[core]]; len(rates) > 0 {
			weight[core] = mean(rates) / fastest
		}
	}
	return weight, unlike
}

// mean sums in ascending order, so that the order of PUs does not show.
func mean(values []float64) float64 {
	sum := 0.0
	for _, v := range slices.Sorted(slices.Values(values)) {
		sum += v
	}
	return sum / float64(len(values))
}
