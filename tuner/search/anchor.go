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
)

// errSpent ends an anchor whose share of the budget is used up. What was found until then stands.
var errSpent = errors.New("budget of the anchor is spent")

// anchor is the search at one M.
type anchor struct {
	*run
	m         int
	rows      int // of the present trials, and
	columns   int // their columns
	began     time.Duration
	share     time.Duration
	entries   map[plans.Schedule]*entry
	list      []*entry // in the order of their first trial
	best      *entry
	incumbent *entry
	before    *entry // the schedule that won at the anchor before
	inside    int    // an M that this anchor's rule covers too, see insideOf; 0: none
	finalists []*finalist
	reference *entry // is timed in turn with them for who reads the journal, and is none of them; or nil
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

// columnUnit is the widest slice of the default heuristic: a sub-problem gives every thread as many
// columns, again and again, so that no thread waits for a last slice more than it would on the
// whole weight.
const columnUnit = 512

// mostRows is how many rows of C a trial computes at most until finalists are decided: more of them
// only add slices of the same kind.
const mostRows = 512

func (r *run) rows(m int) int {
	if r.isolated { // one M, as a compiler of static shapes sees it
		return m
	}
	return min(m, mostRows)
}

// columns is how many columns of C a trial computes. A call that the ceiling says takes longer than a
// few milliseconds is timed on a narrower weight. Widths are doublings of the unit, so that a ceiling
// measured once more hardly moves them: a resumed search wants the same trials.
func (r *run) columns(m int) int {
	const most = 6e-3
	t := r.p.ceilingSeconds(m)
	if t == 0 { // assume 20 GFLOP/s and 5 GB/s a thread
		w := r.p.work(m)
		t = max(w.FLOP/20e9, w.Bytes/5e9) / float64(r.p.Threads)
	}
	n := columnUnit * r.p.Threads
	for 2*n < r.p.Key.N && t*float64(2*n)/float64(r.p.Key.N) <= most {
		n *= 2
	}
	if t <= most {
		n = r.p.Key.N
	}
	return min(n, r.widest(m))
}

// widest is the largest number of columns that a trial of m rows may have.
func (r *run) widest(m int) int {
	if r.p.MaxColumns == nil {
		return r.p.Key.N
	}
	return min(r.p.Key.N, max(1, r.p.MaxColumns(m)))
}

// spent is the part of the anchor's share that is used up.
func (a *anchor) spent() float64 {
	if a.share <= 0 {
		return 1
	}
	return float64(a.o.Clock()-a.began) / float64(a.share)
}

// Levels of timing.
const (
	sweeping  = iota // is it among the best of thousands?
	screening        // is it worth more?
	searching        // is it a gain?
	deciding         // how fast is it?
)

func (a *anchor) limit(level int) Limit {
	l := Limit{MinReps: 1, MaxReps: 3, Time: 4 * time.Millisecond, Steady: 0.02} // one long call, or some short ones
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

// time times a schedule unless this anchor knows it already. It returns nil and no error for a
// schedule that does not run, and errSpent when the budget is over.
func (a *anchor) time(s plans.Schedule, stage string, level int) (*entry, error) {
	if e, ok := a.entries[s]; ok {
		return e, nil
	}
	sample, err := a.call(s, a.limit(level))
	if errors.Is(err, ErrUnfit) {
		a.entries[s] = nil
		a.res.Rejected = append(a.res.Rejected, plans.Rejected{Candidate: fmt.Sprintf("%s m %d: %s", a.p.Key, a.m, s),
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

// again times known schedules once more in turn, so that a disturbance meets all of them.
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

// gains says whether x is faster than y. A near tie is measured again, both in turn; where
// schedules settle, once is enough and less than half of what counts there is no gain.
func (a *anchor) gains(x, y *entry) (bool, error) {
	if x == nil || x == y {
		return false, nil
	}
	if y == nil {
		return true, nil
	}
	rounds, least := 2, 0.003
	if a.m > reuseFrom {
		rounds, least = 1, reuseGain/2
	}
	for round := 0; ; round++ {
		ratio := x.fast() / y.fast()
		if round == rounds || math.Abs(ratio-1) > a.margin() || x.sample.Stopped {
			return ratio < 1-least, nil
		}
		if err := a.again(2, y, x); err != nil {
			return false, err
		}
	}
}

// anchorIncumbents times what is known before any search: the incumbent, twice, which gives the A/A
// noise, and the winners of the anchors before.
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
	if a.o.Alone { // forget it: it is found again only if the strategy proposes it
		delete(a.entries, first.schedule)
		a.list, a.best = nil, nil
	}
	return nil
}

// ranked is all schedules of the anchor that may win, fastest first.
func (a *anchor) ranked() []*entry {
	out := slices.Clone(a.list)
	slices.SortStableFunc(out, func(x, y *entry) int { return cmp.Compare(x.fast(), y.fast()) })
	return out
}

// scale turns seconds of the sub-problem into seconds of the whole.
func (a *anchor) scale() float64 {
	return float64(a.m) / float64(a.rows) * float64(a.p.Key.N) / float64(a.columns)
}

// space is the slices that a trial of a micro-kernel may have.
func (a *anchor) space(k MicroKernel) space { return newSpace(a.p, k, a.rows, a.columns) }

func (a *anchor) report(e *entry, stage string) {
	ev := Event{Phase: a.p.Phase, Key: a.p.Key, M: a.m, Stage: stage, Schedule: e.schedule,
		Seconds: e.fast() * a.scale(), Best: a.best.fast() * a.scale(), Trials: a.res.Trials}
	ev.GFLOPS = a.p.work(a.m).FLOP / ev.Best / 1e9
	ev.OfCeiling = a.p.ceilingSeconds(a.m) / ev.Best
	a.o.Progress(ev)
}
