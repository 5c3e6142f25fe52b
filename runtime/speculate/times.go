package speculate

import (
	"math/bits"
	"slices"
)

// Curve has the expected times of decode steps at one context length.
type Curve struct {
	Positions int       // that each row attends to, about
	Times     []float64 // of steps of 1, 2, ... rows, in a unit that all curves share
	// Measured reports whether the times were measured on this machine, so that drafts may use all
	// rows from the start. With predicted times they use at most twice the rows that were measured.
	Measured bool
}

// stepTimes holds the times of decode steps by their number of rows and by the mean number of
// positions that a row attends to. Numbers of rows that were not measured follow from measured ones
// by the priors.
//
// The speed of a machine changes while it serves. A common factor follows it, so that steps of one
// number of rows also correct the times of others.
type stepTimes struct {
	prior   [contexts][]float64 // expected times by rows - 1, relative to one row in the first range
	lengths [contexts][]stepTime
	trusted bool    // the prior was measured
	factor  float64 // recent times relative to the means; 0 before the first
	pools   []pool  // of fitted
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
// effect. A mean is used from minSteps on.
const (
	settledSteps = 64
	factorSteps  = 8
	minSteps     = 3
	farStep      = 1.5
)

// newStepTimes returns times that follow from expected ones at one context length or more,
// ascending. Between and beyond these lengths times change in proportion to the length.
func newStepTimes(curves []Curve) *stepTimes {
	s := &stepTimes{trusted: curves[0].Measured}
	middle := firstContext / 2
	for i := range s.prior {
		s.prior[i] = timesAt(curves, middle)
		s.lengths[i] = make([]stepTime, len(s.prior[i]))
		middle = max(middle, firstContext/4) * 4
	}
	one := s.prior[0][0]
	for _, list := range s.prior {
		for i := range list {
			list[i] /= one
		}
	}
	return s
}

// timesAt returns the times of steps at a context length.
func timesAt(curves []Curve, positions int) []float64 {
	k := 0
	for k+2 < len(curves) && curves[k+1].Positions < positions {
		k++
	}
	low, high := curves[k], curves[min(k+1, len(curves)-1)]
	out := slices.Clone(low.Times)
	if span := high.Positions - low.Positions; span > 0 {
		for i, t := range out {
			slope := max(0, high.Times[i]-t) / float64(span)
			out[i] = max(t/2, t+slope*float64(positions-low.Positions))
		}
	}
	return out
}

// rangeOf returns the range of a context length.
func rangeOf(context int) int {
	return min(contexts-1, (bits.Len(uint(max(0, context)/firstContext))+1)/2)
}

// observe records the time of a step in seconds.
func (s *stepTimes) observe(rows, context int, took float64) {
	if rows < 1 || rows > s.rows() || !(took > 0) {
		return
	}
	if s.factor == 0 {
		s.factor = 1
	}
	t := &s.lengths[rangeOf(context)][rows-1]
	if t.count >= minSteps {
		ratio := min(max(took/t.mean, s.factor/farStep), s.factor*farStep)
		s.factor += (ratio - s.factor) / factorSteps
		took = ratio * t.mean
	}
	t.count = min(t.count+1, settledSteps)
	t.mean += (took/s.factor - t.mean) / float64(t.count)
}

// measured reports whether steps of so many rows were measured at about this context length.
func (s *stepTimes) measured(rows, context int) bool {
	return rows <= s.rows() && s.lengths[rangeOf(context)][rows-1].count >= minSteps
}

// maxRows returns the most rows for which times are known well enough at about this context
// length: twice the largest number that was measured, or all if the prior was measured.
func (s *stepTimes) maxRows(context int) (rows int) {
	if s.trusted {
		return s.rows()
	}
	for i, t := range s.lengths[rangeOf(context)] {
		if t.count >= minSteps {
			rows = 2 * (i + 1)
		}
	}
	return rows
}

// rows returns the most rows of a step.
func (s *stepTimes) rows() int { return len(s.prior[0]) }

// time returns the expected time of a step. Its unit is the second if any step was measured, else
// the time of a step of one row. Times that were measured at another context length change as the
// prior does.
func (s *stepTimes) time(rows, context int) float64 {
	i := min(max(rows, 1), s.rows()) - 1
	at := rangeOf(context)
	for d := range contexts {
		for _, l := range [2]int{at - d, at + d} {
			if l >= 0 && l < contexts {
				if t := s.expected(l, i); t > 0 {
					return t * s.factor * s.prior[at][i] / s.prior[l][i]
				}
			}
		}
	}
	return s.prior[at][i]
}

// fitted appends the expected times of steps of 1, 2, ... rows. They do not decrease: times of
// fewer rows above those of more are noise, and are replaced by their mean, weighted by the numbers
// of measured steps (pool adjacent violators).
func (s *stepTimes) fitted(dst []float64, context int) []float64 {
	list := s.lengths[rangeOf(context)]
	s.pools = s.pools[:0]
	for i := range list {
		p := pool{s.time(i+1, context), float64(max(1, list[i].count)), 1}
		for n := len(s.pools); n > 0 && s.pools[n-1].time > p.time; n-- {
			q := s.pools[n-1]
			p = pool{(p.time*p.weight + q.time*q.weight) / (p.weight + q.weight), p.weight + q.weight, p.rows + q.rows}
			s.pools = s.pools[:n-1]
		}
		s.pools = append(s.pools, p)
	}
	for _, p := range s.pools {
		for range p.rows {
			dst = append(dst, p.time)
		}
	}
	return dst
}

// pool is consecutive numbers of rows with one time.
type pool struct {
	time, weight float64
	rows         int
}

// expected returns the time of steps of i+1 rows from those measured in a range of context lengths,
// or 0 if there are none. It grows in proportion to the prior between two measured numbers of rows,
// and beyond the first and the last one.
func (s *stepTimes) expected(at, i int) float64 {
	list, prior := s.lengths[at], s.prior[at]
	first, below, above := -1, -1, -1
	for k := range list {
		switch {
		case list[k].count < minSteps:
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
	if prior[above] == prior[first] {
		return from * prior[i] / prior[first]
	}
	return max(from/farStep, from+(to-from)*(prior[i]-prior[first])/(prior[above]-prior[first]))
}
