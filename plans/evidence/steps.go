package evidence

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"sandwich/internal/num"
	"sandwich/plans"
	"sandwich/profiles"
	"sandwich/runtime/phase"
)

// Steps holds the measured times of decode steps of the plan by their number of rows, for one
// sequence whose rows verify a draft.
type Steps struct {
	Positions int       `yaml:"positions" json:"positions"`  // of the sequence before the rows
	Seconds   []float64 `yaml:"seconds,flow" json:"seconds"` // of steps of 1, 2, ... rows; 0: not measured
}

// MarshalYAML writes the times of one context length on one line.
func (s Steps) MarshalYAML() (any, error) {
	type plain Steps
	return profiles.FlowYAML(plain(s))
}

// Bounds of Evidence.Steps.
const (
	maxStepTables = 8
	maxStepRows   = 1 << 16
)

// checkSteps validates the times of decode steps.
func checkSteps(tables []Steps) error {
	if len(tables) > maxStepTables {
		return fmt.Errorf("the evidence has decode steps at %d context lengths, above %d", len(tables), maxStepTables)
	}
	before := -1
	for _, s := range tables {
		if s.Positions <= before || len(s.Seconds) == 0 || len(s.Seconds) > maxStepRows {
			return fmt.Errorf("decode steps at %d positions have %d times; positions are ascending and not negative, "+
				"and times between 1 and %d", s.Positions, len(s.Seconds), maxStepRows)
		}
		before = s.Positions
		for _, t := range s.Seconds {
			if !(t >= 0) || math.IsInf(t, 0) {
				return fmt.Errorf("decode steps at %d positions have the time %v s; times are finite and not negative",
					s.Positions, t)
			}
		}
		if s.Seconds[0] == 0 {
			return fmt.Errorf("decode steps at %d positions have no time of one row", s.Positions)
		}
	}
	return nil
}

// StepCurve has the times of decode steps at one context length by their number of rows.
type StepCurve struct {
	Positions int `json:"positions"` // that each row attends to, about
	// times of steps of 1, 2, ... rows, relative to one row at the shortest context length
	Ratios   []float64 `json:"ratios"`
	Measured []int     `json:"measured_rows,omitempty"` // the other times are interpolated; absent: all estimated
}

// racedPositions is the number of positions before each row of the race's decode batches.
const racedPositions = 128

// StepCurves returns the times of decode steps of 1 to rows rows at the measured context lengths.
// Without Steps they are those of the arm that entered the plan in the race, in batches of distinct
// sequences. Times between measured numbers of rows follow by interpolation, for a mixture of
// experts by the expected number of distinct experts, and times beyond the last in proportion to
// its increase. It returns nil if no steps of one row and of more were measured.
func (e *Evidence) StepCurves(rows int, shape *plans.ModelShape) (out []StepCurve) {
	tables := e.Steps
	if len(tables) == 0 {
		tables = e.raced()
	}
	for _, s := range tables {
		if c := curveOf(s, rows, shape); c.Measured != nil {
			out = append(out, c)
		}
	}
	if len(out) == 0 {
		return nil
	}
	one := out[0].Ratios[0]
	for _, c := range out {
		for i := range c.Ratios {
			c.Ratios[i] /= one
		}
	}
	return out
}

// raced returns the times of the race's decode batches for the arm that entered the plan.
func (e *Evidence) raced() []Steps {
	s := Steps{Positions: racedPositions}
	prefix := phase.Decode.String() + ", " + WinnerMark
	for _, a := range e.Finalists {
		var n int
		if _, err := fmt.Sscanf(a.Test, "tg batch %d", &n); err != nil || n < 1 || n > maxStepRows ||
			!strings.HasPrefix(a.Name, prefix) {
			continue
		}
		if rate := num.Median(a.Samples); rate > 0 {
			s.Seconds = append(s.Seconds, make([]float64, max(0, n-len(s.Seconds)))...)
			s.Seconds[n-1] = float64(n) / rate
		}
	}
	return []Steps{s}
}

// curveOf returns the times of 1 to rows rows in seconds. Measured is nil unless times of one row
// and of more were measured.
func curveOf(s Steps, rows int, shape *plans.ModelShape) StepCurve {
	c := StepCurve{Positions: s.Positions}
	for i, t := range s.Seconds {
		if t > 0 {
			c.Measured = append(c.Measured, i+1)
		}
	}
	if len(c.Measured) < 2 || c.Measured[0] != 1 {
		return StepCurve{}
	}
	c.Ratios = make([]float64, rows)
	at := func(n int) float64 { return work(n, shape) }
	for i := range c.Ratios {
		k, _ := slices.BinarySearch(c.Measured, i+1)
		k = min(max(k, 1), len(c.Measured)-1)
		low, high := c.Measured[k-1], c.Measured[k]
		slope := (s.Seconds[high-1] - s.Seconds[low-1]) / (at(high) - at(low))
		c.Ratios[i] = s.Seconds[low-1] + slope*(at(i+1)-at(low))
	}
	c.Measured = slices.DeleteFunc(c.Measured, func(n int) bool { return n > rows })
	return c
}

// work returns a number that grows with the time of a step as a straight line: its rows, or for a
// mixture of experts the expected share of the experts that they use.
func work(rows int, shape *plans.ModelShape) float64 {
	if shape == nil || shape.Experts <= shape.ExpertsUsed {
		return float64(rows)
	}
	return plans.Reached(shape.ExpertsUsed, shape.Experts, rows)
}

// Expected is the expected speed with drafts, relative to that without, where each drafted token is
// accepted with a probability if those before it were.
type Expected struct {
	Acceptance float64 `json:"acceptance"`
	Depth      int     `json:"drafted_tokens"` // per step, at which the speed is greatest; 0: none
	Speed      float64 `json:"speed"`
}

// ExpectedSpeeds returns the expected speed of one sequence for several acceptances, from the times
// of decode steps of 1, 2, ... rows; nil if they are unknown.
func ExpectedSpeeds(times []float64) (out []Expected) {
	if len(times) < 2 {
		return nil
	}
	for _, accept := range []float64{0.4, 0.6, 0.8, 0.9} {
		best, tokens, p := Expected{Acceptance: accept, Speed: 1}, 1.0, 1.0
		for d := 1; d < len(times); d++ {
			p *= accept
			tokens += p
			if speed := tokens * times[0] / times[d]; times[d] > 0 && speed > best.Speed {
				best.Depth, best.Speed = d, speed
			}
		}
		out = append(out, best)
	}
	return out
}
