package evidence

import (
	"fmt"
	"slices"
	"strings"

	"sandwich/runtime/phase"
)

// StepRatios returns the times of decode steps of 1 to rows rows relative to one row, as the race
// measured them for the arm that entered the plan. Numbers of rows between measured ones follow by
// interpolation, and those beyond the last one in proportion to its increase. It returns nil if no
// race measured steps of one row and of more.
func (e *Evidence) StepRatios(rows int) []float64 {
	times := map[int]float64{} // of steps, by rows
	prefix := phase.Decode.String() + ", " + WinnerMark
	for _, a := range e.Finalists {
		var n int
		if _, err := fmt.Sscanf(a.Test, "tg batch %d", &n); err != nil || n < 1 || !strings.HasPrefix(a.Name, prefix) {
			continue
		}
		if s := slices.Sorted(slices.Values(a.Samples)); len(s) > 0 && s[len(s)/2] > 0 {
			times[n] = float64(n) / s[len(s)/2]
		}
	}
	if times[1] == 0 || len(times) < 2 {
		return nil
	}
	var measured []int
	for n := range times {
		measured = append(measured, n)
	}
	slices.Sort(measured)
	out := make([]float64, rows)
	for i := range out {
		at, _ := slices.BinarySearch(measured, i+1)
		at = min(max(at, 1), len(measured)-1)
		low, high := measured[at-1], measured[at]
		slope := (times[high] - times[low]) / float64(high-low)
		out[i] = (times[low] + slope*float64(i+1-low)) / times[1]
	}
	return out
}

// Expected is the expected speed with drafts, relative to that without, where each drafted token is
// accepted with a probability if those before it were.
type Expected struct {
	Acceptance float64 `json:"acceptance"`
	Depth      int     `json:"drafted_tokens"` // per step, at which the speed is greatest; 0: none
	Speed      float64 `json:"speed"`
}

// ExpectedSpeeds returns the expected speed of one sequence for several acceptances, from the times
// of decode steps relative to one row; nil if they are unknown.
func ExpectedSpeeds(ratios []float64) (out []Expected) {
	if len(ratios) < 2 {
		return nil
	}
	for _, accept := range []float64{0.4, 0.6, 0.8, 0.9} {
		best, tokens, p := Expected{Acceptance: accept, Speed: 1}, 1.0, 1.0
		for d := 1; d < len(ratios); d++ {
			p *= accept
			tokens += p
			if speed := tokens / ratios[d]; ratios[d] > 0 && speed > best.Speed {
				best.Depth, best.Speed = d, speed
			}
		}
		out = append(out, best)
	}
	return out
}
