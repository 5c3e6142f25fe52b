package search

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"sandwich/plans"
	"sandwich/plans/evidence"
)

// errSpent ends an anchor whose share of the budget is used up. The results so far remain.
var errSpent = errors.New("budget of the anchor is spent")

// anchor is the search at one M.
type anchor struct {
	*run
	m         int
	rows      int // of the current trials
	columns   int // of the current trials
	began     time.Duration
	share     time.Duration
	entries   map[plans.Schedule]*entry
	list      []*entry // in the order of their first trial
	best      *entry
	incumbent *entry
	before    *entry // the winner of the previous anchor
	inside    int    // an M that this anchor's rule also covers, see insideOf; 0: none
	finalists []*finalist
	reference *entry // timed interleaved with the finalists for readers of the journal, but not a finalist; may be nil
}

// entry is a schedule that was timed at this anchor.
type entry struct {
	schedule plans.Schedule
	sample   Sample
	stage    string
}

func (e *entry) fast() float64 { return e.sample.Fast() }

func (r *run) newAnchor(m int, share time.Duration) *anchor {
	return &anchor{run: r, m: m, rows: r.rows(m), columns: r.columns(m), inside: r.insideOf(m), began: r.o.Clock(),
		share: share, entries: map[plans.Schedule]*entry{}}
}

// columnUnit is the widest slice of the default heuristic. A sub-problem gives every thread a
// multiple of it, so that no thread waits longer for a last slice than on the whole weight.
const columnUnit = 512

// maxRows bounds the rows of C that a trial computes before the finals. More rows only add slices
// of the same kind.
const maxRows = 512

func (r *run) rows(m int) int {
	if r.isolated { // a single M, as in a compiler of static shapes
		return m
	}
	return min(m, maxRows)
}

// columns returns the number of columns of C that a trial computes. A call that is estimated to
// take longer than a few milliseconds uses a narrower weight. Widths are doublings of the unit, so
// that they hardly depend on the measured ceiling; a resumed search must request the same trials.
func (r *run) columns(m int) int {
	const limit = 6e-3
	t := r.p.ceilingSeconds(m)
	if t == 0 { // assume 20 GFLOP/s and 5 GB/s per thread
		w := r.p.work(m)
		t = max(w.FLOP/20e9, w.Bytes/5e9) / float64(r.p.Threads)
	}
	n := columnUnit * r.p.Threads
	for 2*n < r.p.Key.N && t*float64(2*n)/float64(r.p.Key.N) <= limit {
		n *= 2
	}
	if t <= limit {
		n = r.p.Key.N
	}
	return min(n, r.widest(m))
}

// widest returns the largest number of columns of a trial of m rows.
func (r *run) widest(m int) int {
	if r.p.MaxColumns == nil {
		return r.p.Key.N
	}
	return min(r.p.Key.N, max(1, r.p.MaxColumns(m)))
}

// spent returns the fraction of the anchor's share that is used up.
func (a *anchor) spent() float64 {
	if a.share <= 0 {
		return 1
	}
	return float64(a.o.Clock()-a.began) / float64(a.share)
}

// Levels of timing.
const (
	sweeping  = iota // among the best of thousands?
	screening        // worth another trial?
	searching        // a gain?
	deciding         // final speed
)

func (a *anchor) limit(level int) Limit {
	l := Limit{MinReps: 1, MaxReps: 3, Time: 4 * time.Millisecond, Steady: 0.02} // one long call, or several short ones
	switch level {
	case searching:
		l.MinReps, l.MaxReps, l.Time = 2, a.o.Effort.Reps, 10*time.Millisecond
	case deciding:
		l.MinReps, l.MaxReps, l.Time = 3, a.o.Effort.Reps, 30*time.Millisecond
		l.Steady = 0
	}
	if a.best != nil && level != deciding {
		l.GiveUp = 1.5 * a.best.fast()
	}
	if level == sweeping {
		l.MinReps, l.MaxReps, l.GiveUp = 1, 1, 0.4*l.GiveUp
	}
	return l
}

// time times a schedule unless this anchor has timed it. It returns nil and no error for a schedule
// that does not run, and errSpent when the budget is over.
func (a *anchor) time(s plans.Schedule, stage string, level int) (*entry, error) {
	if e, ok := a.entries[s]; ok {
		return e, nil
	}
	sample, err := a.call(s, a.limit(level))
	if errors.Is(err, ErrUnfit) {
		a.entries[s] = nil
		a.res.Rejected = append(a.res.Rejected, evidence.Rejected{Candidate: fmt.Sprintf("%s m %d: %s", a.p.Key, a.m,
			s),
			Reason: err.Error()})
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	e := &entry{schedule: s, sample: sample, stage: stage}
	a.entries[s] = e
	a.list = append(a.list, e)
	if a.best == nil || e.fast() < a.best.fast() {
		a.best = e
	}
	a.report(e, stage)
	return e, nil
}

func (a *anchor) call(s plans.Schedule, l Limit) (Sample, error) { return a.callAt(a.rows, s, l) }

func (a *anchor) callAt(m int, s plans.Schedule, l Limit) (Sample, error) {
	if err := context.Cause(a.ctx); err != nil {
		return Sample{}, err
	}
	if a.spent() >= 1 {
		return Sample{}, errSpent
	}
	a.res.Trials++
	began := a.o.Clock()
	sample, err := a.timer.Time(Trial{Key: a.p.Key, Compute: a.p.Compute, M: m, Columns: a.columns,
		Schedule: s, Limit: l})
	a.calls = append(a.calls, (a.o.Clock() - began).Seconds())
	return sample, err
}

// again times known schedules once more, interleaved, so that a disturbance affects all of them.
func (a *anchor) again(reps int, list ...*entry) error {
	for range reps {
		for _, e := range list {
			more, err := a.call(e.schedule, Limit{MinReps: 1, MaxReps: 1})
			if err != nil {
				return err
			}
			e.sample.merge(more)
		}
	}
	return nil
}

// gains reports whether x is faster than y. It repeats a near tie, interleaved. At M where
// schedules settle, it does not repeat differences of less than half of the margin.
func (a *anchor) gains(x, y *entry) (bool, error) {
	if x == nil || x == y {
		return false, nil
	}
	if y == nil {
		return true, nil
	}
	rounds, minimum := 2, 0.003
	if a.m > reuseFrom {
		rounds, minimum = 1, reuseGain/2
	}
	for round := 0; ; round++ {
		ratio := x.fast() / y.fast()
		if round == rounds || math.Abs(ratio-1) > a.margin() || x.sample.Stopped {
			return ratio < 1-minimum, nil
		}
		if err := a.again(2, y, x); err != nil {
			return false, err
		}
	}
}

// anchorIncumbents times the known schedules: the incumbent, twice for the A/A noise, and the
// winners of earlier anchors.
func (a *anchor) anchorIncumbents() error {
	if err := a.timeIncumbent(); err != nil {
		return err
	}
	if a.isolated {
		return nil
	}
	const carried = 3
	n := len(a.res.Anchors)
	for i := n - 1; i >= max(0, n-carried); i-- {
		e, err := a.time(a.res.Anchors[i].Schedule, "carried", searching)
		if err != nil {
			return err
		}
		if i == n-1 {
			a.before = e
		}
	}
	return a.timeHints()
}

func (a *anchor) timeHints() error {
	if a.p.Hints == nil {
		return nil
	}
	for _, h := range a.p.Hints(a.m) {
		s := a.space(MicroKernel{h.Kernel, h.Widen})
		if _, err := a.time(s.legal(h), "hint", searching); err != nil {
			return err
		}
	}
	return nil
}

func (a *anchor) timeIncumbent() error {
	first, err := a.time(a.p.Incumbent(a.m), "incumbent", deciding)
	if first == nil || err != nil {
		return err
	}
	second, err := a.call(first.schedule, a.limit(deciding))
	if err != nil {
		return err
	}
	a.aa = append(a.aa, math.Abs(second.Fast()/first.fast()-1))
	first.sample.merge(second)
	a.incumbent = first
	if a.o.Alone { // forget it: only the strategy may propose it
		delete(a.entries, first.schedule)
		a.list, a.best = nil, nil
	}
	return nil
}

// ranked returns all schedules of the anchor that may win, fastest first.
func (a *anchor) ranked() []*entry {
	out := slices.Clone(a.list)
	slices.SortStableFunc(out, func(x, y *entry) int { return cmp.Compare(x.fast(), y.fast()) })
	return out
}

// scale converts seconds of the sub-problem to seconds of the whole.
func (a *anchor) scale() float64 {
	return float64(a.m) / float64(a.rows) * float64(a.p.Key.N) / float64(a.columns)
}

// space returns the slices that a trial of a micro-kernel may have.
func (a *anchor) space(k MicroKernel) space { return newSpace(a.p, k, a.rows, a.columns) }

func (a *anchor) report(e *entry, stage string) {
	ev := Event{Phase: a.p.Phase, Key: a.p.Key, M: a.m, Stage: stage, Schedule: e.schedule,
		Seconds: e.fast() * a.scale(), Best: a.best.fast() * a.scale(), Trials: a.res.Trials}
	ev.GFLOPS = a.p.work(a.m).FLOP / ev.Best / 1e9
	ev.OfCeiling = a.p.ceilingSeconds(a.m) / ev.Best
	a.o.Progress(ev)
}
