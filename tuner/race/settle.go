package race

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"sandwich/plans/evidence"
)

// With fewer than sureRounds rounds, an interval is the range of the rounds, which contains the
// median with less than 95 % confidence. Then an arm leaves only if all of its rounds were clearly
// slower.
const (
	sureRounds  = 6
	fewLaps     = 3
	plainlySlow = 0.2
)

// GainOver returns the gain of an arm over another in the rounds in which both ran all tests.
func (s *Standing) GainOver(base *Standing) evidence.Gain {
	var x, y []evidence.Arm
	for _, lap := range s.Laps {
		k, shared := slices.BinarySearchFunc(base.Laps, lap.Round, func(l Lap, round int) int {
			return cmp.Compare(l.Round, round)
		})
		if !shared || slices.Contains(lap.Seconds, 0) {
			continue
		}
		if x == nil {
			x, y = make([]evidence.Arm, len(lap.Seconds)), make([]evidence.Arm, len(lap.Seconds))
		}
		for test, seconds := range lap.Seconds {
			x[test].Samples = append(x[test].Samples, 1/base.Laps[k].Seconds[test])
			y[test].Samples = append(y[test].Samples, 1/seconds)
		}
	}
	return evidence.GainOver(x, y)
}

// settle ends a stage: it finds the best arm, stops those that are significantly slower, then the
// slower half of the others except for Keep arms.
func (r *race) settle() {
	gains := make([]evidence.Gain, len(r.Arms))
	var alive []int // best first
	best := 0
	for i, c := range r.Arms {
		gains[i] = r.out[i].GainOver(&r.out[0])
		if i > 0 && gains[i].Median > gains[best].Median && r.out[i].Lost == "" && !c.Stays {
			best = i
		}
	}
	for i, c := range r.Arms {
		if i == 0 || i == best || c.Stays || r.out[i].Lost != "" {
			continue
		}
		if gain, sure := r.slower(i, best, gains); sure {
			r.out[i].Lost = fmt.Sprintf("significantly slower than %s, by %.1f %% after %d rounds", r.Arms[best].Name,
				-100*gain.Median, len(r.out[i].Laps))
			continue
		}
		alive = append(alive, i)
	}
	slices.SortStableFunc(alive, func(a, b int) int { return cmp.Compare(gains[b].Median, gains[a].Median) })
	if best > 0 {
		alive = append([]int{best}, alive...)
	}
	keep := max(r.Keep, (len(alive)+1)/2)
	for _, i := range alive[min(keep, len(alive)):] {
		r.out[i].Lost = fmt.Sprintf("in the slower half after %d rounds, %.1f %% slower than %s", len(r.out[i].Laps),
			100*(1-(1+gains[i].Median)/(1+gains[best].Median)), r.Arms[best].Name)
	}
}

// slower returns the gain of an arm over the best one, and whether it is significantly slower. It
// compares the rounds that both ran. If their partitions were never open at the same time, it
// compares the ends of their intervals over the reference.
func (r *race) slower(i, best int, gains []evidence.Gain) (evidence.Gain, bool) {
	g := r.out[i].GainOver(&r.out[best])
	if g.Rounds < min(len(r.out[i].Laps), len(r.out[best].Laps)) {
		x, y := gains[best], gains[i]
		g = evidence.Gain{Median: (1+y.Median)/(1+x.Median) - 1, Low: (1+y.Low)/(1+x.High) - 1,
			High: (1+y.High)/(1+x.Low) - 1, Rounds: min(x.Rounds, y.Rounds)}
	}
	if math.IsNaN(g.High) {
		return g, false
	}
	return g, g.Rounds >= sureRounds && g.High < 0 || g.Rounds >= fewLaps && g.High < -plainlySlow
}
