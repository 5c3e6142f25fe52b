package search

import (
	"cmp"
	"math"
	"slices"

	"sandwich/plans"
)

// finalist is a schedule that may enter the table.
type finalist struct {
	*entry
	inside Sample  // calls at the anchor's M inside its range
	uneven float64 // how much less evenly than at these M its slices lie on the threads over the range, see unevenness
}

// cost of a finalist in seconds: the geometric mean over the anchor's own M and the one inside its
// range, once all finalists were timed there, times what the other M of the range lose.
func (f *finalist) cost() float64 {
	if len(f.inside.Seconds) == 0 {
		return f.fast() * f.uneven
	}
	return math.Sqrt(f.fast()*f.inside.Fast()) * f.uneven
}

// unevenness is how much longer the busiest thread works over a range of M, on average, than at the
// M that are measured. A slice of 36 rows and two ways along M share 128 rows evenly, but 100 two
// to one, which no single M shows.
func (s space) unevenness(c plans.Schedule, from, to int, measured ...int) float64 {
	const most = 64 // M looked at
	at := func(m int) float64 {
		s.m = m
		return s.busiest(c)
	}
	sum, n := 0.0, 0
	for m, step := to, max(1, (to-from+1)/most); m >= from; m -= step {
		sum, n = sum+at(m), n+1
	}
	logs := 0.0
	for _, m := range measured {
		logs += math.Log(at(m))
	}
	return sum / float64(n) / math.Exp(logs/float64(len(measured)))
}

// busiest is the work of the thread that has most of it over the mean of all.
func (s space) busiest(c plans.Schedule) float64 {
	rows, cols := ceilDiv(s.m, c.BM), ceilDiv(s.columns, c.BN)
	most := ceilDiv(rows*cols, s.threads)
	if c.WaysM > 0 {
		most = ceilDiv(rows, c.WaysM) * ceilDiv(cols, c.WaysN)
	}
	return float64(most*s.threads) / float64(rows*cols)
}

// insideMost is the last anchor that is decided inside its range too: beyond it a remainder of rows
// is a small part.
const insideMost = 512

// insideOf is an odd M in the middle of the range that the rule of anchor m will cover, 0 where
// larger M behave alike or the range is m alone. Anchors are round numbers, which low register
// tiles divide: without the other M they would be chosen for their remainders.
func (r *run) insideOf(m int) int {
	from := r.rangeFrom(m)
	if middle := (from+m)/2 | 1; m <= insideMost && middle < m {
		return middle
	}
	return 0
}

// rangeFrom is the first M of the range that the rule of anchor m will cover.
func (r *run) rangeFrom(m int) int {
	n := len(r.res.Anchors)
	if r.isolated || n == 0 {
		return m
	}
	return r.res.Anchors[n-1].M + 1
}

// decide measures the best few again, in turn, on the whole weight if the time allows that: on a
// narrower one the last, partly filled round of slices weighs more. The incumbent and the schedule
// of the anchor before take part, since they keep their place unless they are beaten.
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

// rounds is how often finalists are called in turn: half of the effort's calls, and more where a
// call is so short that a disturbance spoils several.
func (a *anchor) rounds(list []*finalist) int {
	const enough, more = 20e-3, 4
	least := (a.o.Effort.Reps + 1) / 2
	return min(max(least, int(enough/(list[0].fast()*a.scale()))), more*least)
}

// chooseFinalists takes the three fastest, the fastest of two other tiles where that may matter
// inside the range, the incumbent and the schedule of the anchor before.
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

// measureWide times the finalists afresh on all rows and more columns: samples of different widths
// do not mix. Those that the budget has time for stay.
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

// againFinalists times finalists once more in turn, inside the range too when they were timed there
// before.
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

// timeInside times all finalists inside the range, in turn.
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

// settle measures the finalists that are still as fast as the fastest, within the noise, some more
// times: once on a quiet machine, more where their calls scatter.
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

// affordable is how many columns of all rows can be computed in what is left of the anchor's share
// when each finalist is called the given number of times; 0 where that is no better than what was
// timed before.
func (a *anchor) affordable(finalists []*finalist, calls int) int {
	widest := a.widest(a.m)
	if a.columns >= widest && a.rows == a.m {
		return 0
	}
	round := 0.0 // seconds to compute one column with each once
	for _, f := range finalists {
		round += f.fast() / float64(a.columns) * float64(a.m) / float64(a.rows)
	}
	if a.inside > 0 {
		round *= 2
	}
	n := (1 - a.spent()) * a.share.Seconds() / float64(calls) / round
	least := a.columns
	if a.rows == a.m {
		least *= 2
	}
	switch columns := int(n) / columnUnit * columnUnit; {
	case n >= float64(widest):
		return widest
	case columns >= least:
		return columns
	}
	return 0
}

// outcome picks the winner: the fastest, unless the schedule of the anchor before, or else the
// incumbent, is as fast within the noise. Few schedules make a small table, and a change must be
// worth something.
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
	if a.m > reuseFrom { // schedules settle, and the winner of many noisy ones looks better than it is
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

// find is the finalist of an entry, nil where it is none.
func find(list []*finalist, e *entry) *finalist {
	for _, f := range list {
		if f.entry == e {
			return f
		}
	}
	return nil
}
