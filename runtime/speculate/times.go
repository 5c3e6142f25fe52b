package speculate

import "math/bits"

// stepTimes holds the times of decode steps by their number of rows and by the mean number of
// positions that a row attends to. Numbers of rows that were not measured follow from measured ones
// by the priors.
//
// The speed of a machine changes while it serves. A common factor follows it, so that steps of one
// number of rows also correct the times of others.
type stepTimes struct {
	prior   []float64 // by rows - 1, relative to one row
	lengths [contexts][]stepTime
	factor  float64 // recent times relative to the means; 0 before the first
}

// stepTime is the mean time of steps in seconds, without the common factor.
type stepTime struct {
	mean  float64
	count int // steps, at most settledSteps
}

// contexts is the number of ranges of context lengths with separate times. The first range ends at
// firstContext positions, each other at four times the end of the one before it.
const contexts, firstContext = 5, 512

// Steps are averaged until settledSteps; then each one moves the mean by 1/settledSteps of the
// difference. Each step moves the common factor by 1/factorSteps of the difference. A step counts
// as at most farStep times as long or short as expected, so that a pause of the machine has little
// effect. A mean is used from leastSteps on.
const (
	settledSteps = 64
	factorSteps  = 8
	leastSteps   = 3
	farStep      = 1.5
)

// newStepTimes returns times for up to len(prior) rows.
func newStepTimes(prior []float64) *stepTimes {
	s := &stepTimes{prior: prior}
	for i := range s.lengths {
		s.lengths[i] = make([]stepTime, len(prior))
	}
	return s
}

// rangeOf returns the range of a context length.
func rangeOf(context int) int {
	return min(contexts-1, (bits.Len(uint(max(0, context)/firstContext))+1)/2)
}

// observe records the time of a step in seconds.
func (s *stepTimes) observe(rows, context int, took float64) {
	if rows < 1 || rows > len(s.prior) || !(took > 0) {
		return
	}
	if s.factor == 0 {
		s.factor = 1
	}
	t := &s.lengths[rangeOf(context)][rows-1]
	if t.count >= leastSteps {
		ratio := min(max(took/t.mean, s.factor/farStep), s.factor*farStep)
		s.factor += (ratio - s.factor) / factorSteps
		took = ratio * t.mean
	}
	t.count = min(t.count+1, settledSteps)
	t.mean += (took/s.factor - t.mean) / float64(t.count)
}

// measured reports whether steps of so many rows were measured at about this context length.
func (s *stepTimes) measured(rows, context int) bool {
	return rows <= len(s.prior) && s.lengths[rangeOf(context)][rows-1].count >= leastSteps
}

// largest returns the largest number of rows whose steps were measured at about this context
// length, 0 if there is none.
func (s *stepTimes) largest(context int) (rows int) {
	for i, t := range s.lengths[rangeOf(context)] {
		if t.count >= leastSteps {
			rows = i + 1
		}
	}
	return rows
}

// time returns the expected time of a step. Its unit is the second if any step was measured, else
// the time of a step of one row.
func (s *stepTimes) time(rows, context int) float64 {
	i := min(max(rows, 1), len(s.prior)) - 1
	at := rangeOf(context)
	for d := range contexts {
		for _, l := range [2]int{at - d, at + d} {
			if l >= 0 && l < contexts {
				if t := s.expected(s.lengths[l], i); t > 0 {
					return t * s.factor
				}
			}
		}
	}
	return s.prior[i]
}

// expected returns the time of steps of i+1 rows from measured ones, or 0 if there are none. It
// grows in proportion to the prior between two measured numbers of rows, and beyond the first and
// the last one.
func (s *stepTimes) expected(list []stepTime, i int) float64 {
	first, below, above := -1, -1, -1
	for k := range list {
		switch {
		case list[k].count < leastSteps:
		case first < 0:
			first = k
			fallthrough
		case k <= i:
			below = k
		case above < 0:
			above = k
		}
	}
	switch {
	case first < 0:
		return 0
	case below == i:
		return list[i].mean
	case above < 0:
		first, above = below, first // beyond the last one: by the first and the last
	default:
		first = below
	}
	from, to := list[first].mean, list[above].mean
	if s.prior[above] == s.prior[first] {
		return from * s.prior[i] / s.prior[first]
	}
	return max(from/farStep, from+(to-from)*(s.prior[i]-s.prior[first])/(s.prior[above]-s.prior[first]))
}
