package search

import (
	"errors"
	"math"
	"slices"
	"time"

	"sandwich/microkernel"
	"sandwich/plans"
)

// ErrUnfit is wrapped by a Timer's error when only this schedule cannot run (its kernel cannot be
// built, its scratch does not fit): the search records it as rejected and goes on. Any other error
// ends the search.
var ErrUnfit = errors.New("schedule does not run")

// Trial is one thing to time: a schedule on C[M,N] = A[M,K] W[N,K]^T.
type Trial struct {
	Key     plans.WeightKey
	Compute microkernel.Compute
	M       int
	// columns of C to compute, at most Key.N: a sub-problem stands for the whole where a whole call
	// is long
	Columns  int
	Schedule plans.Schedule
	Limit    Limit
}

// Timer times trials. It is called from one goroutine.
type Timer interface {
	Time(t Trial) (Sample, error)
}

// Sample is what a Timer returns: the seconds of each call.
type Sample struct {
	Seconds []float64
	Stopped bool // given up early: it was losing
}

// Median of the calls, in seconds; infinite without any.
func (s Sample) Median() float64 {
	if len(s.Seconds) == 0 {
		return math.Inf(1)
	}
	x := slices.Sorted(slices.Values(s.Seconds))
	n := len(x)
	return (x[(n-1)/2] + x[n/2]) / 2
}

// Fast is the mean of the fastest third of the calls, in seconds: what schedules are compared by.
// Whatever disturbs a call (another process, an interrupt, a neighbor on the memory bus) only
// makes it longer, so that the fast ones say more about the schedule than the median does. Infinite
// without any call.
func (s Sample) Fast() float64 {
	if len(s.Seconds) == 0 {
		return math.Inf(1)
	}
	x := slices.Sorted(slices.Values(s.Seconds))
	x = x[:max(1, len(x)/3)]
	sum := 0.0
	for _, t := range x {
		sum += t
	}
	return sum / float64(len(x))
}

// Spread is half the interquartile range over the median, 0 below three calls.
func (s Sample) Spread() float64 {
	n := len(s.Seconds)
	if n < 3 {
		return 0
	}
	x := slices.Sorted(slices.Values(s.Seconds))
	return (x[(3*(n-1)+2)/4] - x[(n-1)/4]) / 2 / s.Median()
}

// merge adds the calls of o.
func (s *Sample) merge(o Sample) {
	s.Seconds = append(s.Seconds, o.Seconds...)
	s.Stopped = s.Stopped && o.Stopped
}

// Limit says how many calls a trial makes.
type Limit struct {
	MinReps, MaxReps int
	Time             time.Duration // calls beyond MinReps stop when they have taken this long
	Steady           float64       // and when their Spread is at most this
	GiveUp           float64       // seconds of a call beyond which the schedule has lost: racing (0: never)
}

// Repeat calls run, which makes one call and returns its seconds, until the limit says enough: at
// least MinReps and at most MaxReps times, fewer when even the best call so far lies beyond GiveUp.
// Timers are built on it so that all of them treat noise alike.
func (l Limit) Repeat(run func() (float64, error)) (Sample, error) {
	var s Sample
	best, sum := math.Inf(1), 0.0
	for len(s.Seconds) < max(1, l.MaxReps) {
		t, err := run()
		if err != nil {
			return s, err
		}
		s.Seconds = append(s.Seconds, t)
		best, sum = min(best, t), sum+t
		n := len(s.Seconds)
		// One disturbed call must not sink a good schedule: a single loss only counts when it is a
		// clear one.
		if l.GiveUp > 0 && (best > 2*l.GiveUp || n >= 2 && best > l.GiveUp) {
			s.Stopped = true
			return s, nil
		}
		if n < l.MinReps {
			continue
		}
		if sum >= l.Time.Seconds() || n >= 3 && l.Steady > 0 && s.Spread() <= l.Steady {
			break
		}
	}
	return s, nil
}
