package search

import (
	"errors"
	"math"
	"slices"
	"time"

	"sandwich/internal/num"
	"sandwich/microkernel"
	"sandwich/plans"
)

// ErrUnfit is wrapped by a Timer's error if only this schedule cannot run, because its kernel
// cannot be built or its scratch does not fit. The search records it as rejected and continues. Any
// other error ends the search.
var ErrUnfit = errors.New("schedule does not run")

// Trial is a schedule to time on C[M,N] = A[M,K] W[N,K]^T.
type Trial struct {
	Key     plans.WeightKey
	Compute microkernel.Compute
	M       int
	// Columns is the number of columns of C to compute, at most Key.N: if a call on the whole
	// weight takes long, a sub-problem represents it.
	Columns  int
	Schedule plans.Schedule
	Limit    Limit
}

// Timer times trials. It is called from one goroutine.
type Timer interface {
	Time(t Trial) (Sample, error)
}

// Sample has the seconds of each call of a trial.
type Sample struct {
	Seconds []float64
	Stopped bool // stopped early because it was slower
}

// Median returns the median of the calls in seconds, or infinity without any.
func (s Sample) Median() float64 {
	if len(s.Seconds) == 0 {
		return math.Inf(1)
	}
	return num.Median(s.Seconds)
}

// Fast returns the mean of the fastest third of the calls, in seconds, or infinity without any
// call. Schedules are compared by it. Disturbances only make calls longer, so that the fast ones
// are more accurate than the median.
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

// Spread returns half the interquartile range over the median, or 0 below three calls.
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

// Limit bounds the calls of a trial.
type Limit struct {
	MinReps, MaxReps int
	Time             time.Duration // calls beyond MinReps stop after this time
	Steady           float64       // and when their Spread is at most this
	GiveUp           float64       // seconds of a call beyond which the schedule is stopped; 0: never
}

// Repeat calls run, which makes one call and returns its seconds, between MinReps and MaxReps
// times, or fewer if even the best call so far is slower than GiveUp. All Timers use it, so that
// they treat noise alike.
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
		// One disturbed call must not reject a good schedule: a single slow call only counts if it
		// is very slow.
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
