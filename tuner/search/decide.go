package search

import (
	"cmp"
	"math"
	"slices"

	"sandwich/internal/num"
	"sandwich/plans"
)

// finalist is a schedule that may enter the table.
type finalist struct {
	*entry
	inside Sample  // calls at the M inside the anchor's range
	uneven float64 // relative imbalance of its slices over the range, see unevenness
}

// cost returns the cost of a finalist in seconds: the geometric mean over the anchor's M and the
// one inside its range, if all finalists were timed there, times the imbalance at the other M of
// the range.
func (f *finalist) cost() float64 {
	if len(f.inside.Seconds) == 0 {
		return f.fast() * f.uneven
	}
	return math.Sqrt(f.fast()*f.inside.Fast()) * f.uneven
}

// unevenness returns how much longer the busiest thread works over a range of M, on average, than
// at the measured M. For example, slices of 36 rows and two ways along M share 128 rows evenly, but
// 100 rows two to one.
func (s space) unevenness(c plans.Schedule, from, to int, measured ...int) float64 {
	const limit = 64 // maximum M to evaluate
	at := func(m int) float64 {
		s.m = m
		return s.busiest(c)
	}
	sum, n := 0.0, 0
	for m, step := to, max(1, (to-from+1)/limit); m >= from; m -= step {
		sum, n = sum+at(m), n+1
	}
	logs := 0.0
	for _, m := range measured {
		logs += math.Log(at(m))
	}
	return sum / float64(n) / math.Exp(logs/float64(len(measured)))
}

// busiest returns the work of the busiest thread divided by the mean of all.
func (s space) busiest(c plans.Schedule) float64 {
	rows, cols := num.CeilDiv(s.m, c.BM), num.CeilDiv(s.columns, c.BN)
	tiles := num.CeilDiv(rows*cols, s.threads)
	if c.WaysM > 0 {
		tiles = num.CeilDiv(rows, c.WaysM) * num.CeilDiv(cols, c.WaysN)
	}
	return float64(tiles*s.threads) / float64(rows*cols)
}

// maxInside is the last anchor that is also decided inside its range; at larger M, remainders of
// rows matter little.
const maxInside = 512

// insideOf returns an odd M in the middle of the range that the rule of anchor m covers, or 0 if
// larger M behave alike or the range is only m. Anchors are round numbers; without the other M, low
// register tiles would win because they divide these without remainder.
func (r *run) insideOf(m int) int {
	from := r.rangeFrom(m)
	if middle := (from+m)/2 | 1; m <= maxInside && middle < m {
		return middle
	}
	return 0
}

// rangeFrom returns the first M of the range that the rule of anchor m covers.
func (r *run) rangeFrom(m int) int {
	n := len(r.res.Anchors)
	if r.isolated || n == 0 {
		return m
	}
	return r.res.Anchors[n-1].M + 1
}

// decide repeats the best few, interleaved, on the whole weight if the time allows, because on a
// narrower one the last, partly filled round of slices weighs more. The incumbent and the winner of
// the previous anchor take part, because they stay unless they are beaten.
func (a *anchor) decide() error {
	chosen := a.chooseFinalists()
	if len(chosen) < 2 {
		return nil
	}
	reps := a.rounds(chosen)
	if wide := a.affordable(chosen, reps+1); wide > 0 {
		if err := a.measureWide(chosen, wide); err != nil {
			return err
		}
	} else {
		a.finalists = chosen
	}
	for range reps {
		if err := a.againFinalists(a.finalists); err != nil {
			return err
		}
	}
	if err := a.timeInside(reps); err != nil {
		return err
	}
	return a.settle()
}

// rounds returns how often the finalists are called: half of the effort's calls, and more for short
// calls, of which a disturbance spoils several.
func (a *anchor) rounds(list []*finalist) int {
	const enough, more = 20e-3, 4
	minimum := (a.o.Effort.Reps + 1) / 2
	return min(max(minimum, int(enough/(list[0].fast()*a.scale()))), more*minimum)
}

// chooseFinalists returns the three fastest, the fastest of two other tiles if that may matter
// inside the range, the incumbent and the winner of the previous anchor.
func (a *anchor) chooseFinalists() []*finalist {
	const fastest, tiles, near = 3, 2, 1.1
	measured := []int{a.m}
	if a.inside > 0 {
		measured = append(measured, a.inside)
	}
	var out []*finalist
	add := func(e *entry) {
		if find(out, e) == nil {
			s := newSpace(a.p, e.kernel(), a.m, a.p.Key.N)
			out = append(out, &finalist{entry: e, uneven: s.unevenness(e.schedule, a.rangeFrom(a.m), a.m, measured...)})
		}
	}
	ranked := a.ranked()
	for i, e := range ranked {
		if i < fastest {
			add(e)
			continue
		}
		known := slices.ContainsFunc(out, func(f *finalist) bool { return f.kernel().tile() == e.kernel().tile() })
		if a.inside > 0 && !known && len(out) < fastest+tiles && e.fast() <= near*ranked[0].fast() {
			add(e)
		}
	}
	for _, e := range []*entry{a.incumbent, a.before} {
		if e != nil && a.entries[e.schedule] == e {
			add(e)
		}
	}
	return out
}

// measureWide times the finalists again on all rows and more columns, because samples of different
// widths are not comparable. It keeps those for which there is time.
func (a *anchor) measureWide(chosen []*finalist, columns int) error {
	rows, narrow := a.rows, a.columns
	a.rows, a.columns = a.m, columns
	for _, f := range chosen {
		first, err := a.call(f.schedule, Limit{MinReps: 1, MaxReps: 1})
		if err != nil {
			if len(a.finalists) == 0 {
				a.rows, a.columns = rows, narrow
			}
			return err
		}
		f.sample = first
		a.finalists = append(a.finalists, f)
	}
	return nil
}

// againFinalists times finalists once more, interleaved, also inside the range if they were timed
// there.
func (a *anchor) againFinalists(list []*finalist) error {
	for _, f := range list {
		if err := a.again(1, f.entry); err != nil {
			return err
		}
		if len(f.inside.Seconds) == 0 {
			continue
		}
		more, err := a.callAt(a.inside, f.schedule, Limit{MinReps: 1, MaxReps: 1})
		if err != nil {
			return err
		}
		f.inside.merge(more)
	}
	if a.reference == nil {
		return nil
	}
	return a.again(1, a.reference)
}

// timeInside times all finalists inside the range, interleaved.
func (a *anchor) timeInside(reps int) error {
	if a.inside == 0 {
		return nil
	}
	samples := make([]Sample, len(a.finalists))
	for range reps {
		for i, f := range a.finalists {
			more, err := a.callAt(a.inside, f.schedule, Limit{MinReps: 1, MaxReps: 1})
			if err != nil {
				return err
			}
			samples[i].merge(more)
		}
	}
	for i, f := range a.finalists {
		f.inside = samples[i]
	}
	return nil
}

// settle repeats the finalists within the noise of the fastest: once on a quiet machine, more often
// if their calls scatter.
func (a *anchor) settle() error {
	const quiet, scattered = 1, 3
	list := a.finalists
	for round := range scattered {
		sortFinalists(list)
		n, spread := 1, list[0].sample.Spread()
		for n < len(list) && list[n].cost() <= list[0].cost()*(1+2*a.margin()) {
			spread = max(spread, list[n].sample.Spread())
			n++
		}
		if n == 1 || round >= quiet && spread <= a.margin() {
			return nil
		}
		for range 2 {
			if err := a.againFinalists(list[:n]); err != nil {
				return err
			}
		}
	}
	return nil
}

func sortFinalists(list []*finalist) {
	slices.SortStableFunc(list, func(x, y *finalist) int { return cmp.Compare(x.cost(), y.cost()) })
}

// affordable returns the number of columns of all rows that can be computed in the rest of the
// anchor's share if each finalist is called the given number of times, or 0 if that is not more
// than before.
func (a *anchor) affordable(finalists []*finalist, calls int) int {
	widest := a.widest(a.m)
	if a.columns >= widest && a.rows == a.m {
		return 0
	}
	round := 0.0 // seconds to compute one column with each finalist once
	for _, f := range finalists {
		round += f.fast() / float64(a.columns) * float64(a.m) / float64(a.rows)
	}
	if a.inside > 0 {
		round *= 2
	}
	n := (1 - a.spent()) * a.share.Seconds() / float64(calls) / round
	minimum := a.columns
	if a.rows == a.m {
		minimum *= 2
	}
	switch columns := int(n) / columnUnit * columnUnit; {
	case n >= float64(widest):
		return widest
	case columns >= minimum:
		return columns
	}
	return 0
}

// outcome picks the winner: the fastest, unless the winner of the previous anchor, or else the
// incumbent, is within the noise. Few schedules make a small table, and a change must bring a gain.
func (a *anchor) outcome() Anchor {
	out := Anchor{M: a.m, Schedule: a.p.Incumbent(a.m), Stage: "budget", Tried: len(a.entries)}
	list := a.finalists
	if len(list) == 0 {
		list = a.chooseFinalists()
	}
	if len(list) == 0 {
		a.res.Cut++
		return out
	}
	sortFinalists(list)
	win, within := list[0], a.margin()/2
	if a.m > reuseFrom { // schedules settle, and the best of many noisy ones is biased
		within = max(reuseGain, a.margin())
	}
	incumbent, before := find(list, a.incumbent), find(list, a.before)
	if incumbent != nil && incumbent.cost() <= win.cost()*(1+a.margin()/2) {
		win = incumbent
	}
	if before != nil && before.cost() <= list[0].cost()*(1+within) && (incumbent == nil ||
		before.cost() <= incumbent.cost()*(1+a.margin()/2)) {
		win = before
	}
	scale := a.scale()
	out.Schedule, out.Stage = win.schedule, win.stage
	for _, t := range win.sample.Seconds {
		out.Seconds = append(out.Seconds, t*scale)
	}
	if incumbent != nil {
		out.Rival = incumbent.fast() * scale
	}
	return out
}

// find returns the finalist of an entry, or nil.
func find(list []*finalist, e *entry) *finalist {
	for _, f := range list {
		if f.entry == e {
			return f
		}
	}
	return nil
}
