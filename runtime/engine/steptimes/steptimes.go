// Package steptimes estimates the times of decode steps by their number of rows, for plans without
// measured ones.
package steptimes

import (
	"sandwich/plans"
	"sandwich/profiles"
	"sandwich/roofline"
	"sandwich/runtime/model"
	"sandwich/runtime/model/cost"
	"sandwich/runtime/speculate"
)

// Context lengths of the estimates, in positions before the rows.
const short, long = 128, 2048

// Rates of a machine without measured ceilings, in FLOP/s and bytes/s. Speculation compares times
// with each other, so that only their ratio matters, which is that of a typical machine. With lower
// bounds for both, as in package forecast, each drafted row would seem to cost a whole step.
const (
	typicalPeak      = 1e11
	typicalBandwidth = 1e10
)

// near is the part of the ceilings that kernels are assumed to reach.
var near = roofline.Efficiency{Peak: 0.8, Read: 0.8}

// Estimate returns the times in seconds of steps of 1 to rows rows of one sequence at two context
// lengths, from the ceilings of the profile: weights are read once per step, those of experts as
// far as rows are expected to use distinct ones, and each row multiplies. The profile may be nil.
// It returns an error if the plan is for another model.
func Estimate(m *model.Model, plan *plans.Plan, p *profiles.Profile, rows int) ([]speculate.Curve, error) {
	work, err := cost.NewWork(m, plan)
	if err != nil {
		return nil, err
	}
	limits := limitsOf(plan, p)
	curves := []speculate.Curve{{Positions: short}, {Positions: long}}
	for k := range curves {
		for n := 1; n <= rows; n++ {
			step := cost.Rows{Spans: []cost.Span{{Pos: curves[k].Positions, N: n}}, Heads: n}
			seconds := 0.0
			for _, t := range work.Of(step) {
				seconds += limits(t.Compute).Seconds(t.Step, near)
			}
			curves[k].Times = append(curves[k].Times, seconds)
		}
	}
	return curves, nil
}

// Copy returns the time in seconds of copying some bytes in memory.
func Copy(bytes int64, plan *plans.Plan, p *profiles.Profile) float64 {
	return limitsOf(plan, p)("f32").Seconds(roofline.Step{Work: roofline.Work{Bytes: 2 * float64(bytes)}}, near)
}

// limitsOf returns a function that returns the ceilings of a path on the PUs of the plan's decode
// phase.
func limitsOf(plan *plans.Plan, p *profiles.Profile) func(path string) roofline.Limits {
	var ceilings map[string]roofline.Ceiling
	if p != nil {
		// An error leaves a nil map: times then follow from typical rates.
		ceilings, _ = roofline.NewMachine(p).CoreCeilings(plan.Decode.PUs, plan.Widest(), plan.Arithmetics())
	}
	return func(path string) roofline.Limits {
		if c, ok := ceilings[path]; ok && c.Targets[0].Peak > 0 && c.Bandwidth > 0 {
			return roofline.Limits{Peak: c.Targets[0].Peak, Read: c.Bandwidth}
		}
		return roofline.Limits{Peak: typicalPeak, Read: typicalBandwidth}
	}
}
