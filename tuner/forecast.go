package tuner

import (
	"fmt"
	"slices"

	"sandwich/plans"
	"sandwich/plans/heuristic"
	"sandwich/profiles"
	"sandwich/roofline"
	"sandwich/tuner/candidates"
	"sandwich/tuner/measure"
)

// untuned returns what predictions of all configurations of a machine share: the untuned plan, the
// profile completed with assumed figures, and a sentence for each of these.
func (o *SimulateOptions) untuned() (plan *plans.Plan, profile *profiles.Profile, assumed []string, err error) {
	plan, err = heuristic.Default(o.Profile, o.Shape, heuristic.Options{Compute: o.Compute, KV: o.KV, ISA: o.ISA})
	if err != nil {
		return nil, nil, nil, err
	}
	profile, assumed = candidates.Complete(o.Profile, plan.Widest(), plan.Arithmetics())
	return plan, profile, assumed, nil
}

// Forecast predicts forwards of a model under service configurations of a machine, as the ranking
// of candidates does.
type Forecast struct {
	predictor *candidates.Predictor
	profile   *profiles.Profile
	assumed   []string
}

// NewForecast returns a forecast for the machine and the model of the options, calibrated by their
// anchors if there are any.
func NewForecast(o SimulateOptions) (*Forecast, error) {
	plan, profile, assumed, err := o.untuned()
	if err != nil {
		return nil, err
	}
	predictor, err := candidates.NewPredictor(profile, plan, o.Model, candidates.Options{})
	if err != nil {
		return nil, err
	}
	if o.Anchors.known() { // otherwise they are rejected
		predictor.Calibrate(o.Anchors.Types)
	}
	return &Forecast{predictor, profile, append(assumed, candidates.Assumptions(o.Anchors.near())...)}, nil
}

// Assumed returns one sentence for each figure that was not measured.
func (f *Forecast) Assumed() []string { return f.assumed }

// Seconds returns the seconds of each of some forwards under the service configuration of a plan.
// It fails if the model cannot be divided among the plan's ranks.
func (f *Forecast) Seconds(plan *plans.Plan, list []measure.Forward) (out []float64, err error) {
	c, err := candidates.Of(f.profile, plan)
	if err != nil {
		return nil, err
	}
	cost, err := f.predictor.Cost(c)
	if err != nil {
		return nil, fmt.Errorf("predicting forwards: %w", err)
	}
	for _, x := range list {
		if x.Prefill {
			out = append(out, cost.Prefill(x.Context, x.Rows, true).Seconds())
		} else {
			out = append(out, cost.DecodeSeconds(x.Rows, x.Context))
		}
	}
	return out, nil
}

// Add adds the weight types of another calibration that this one lacks.
func (c *Calibration) Add(other *Calibration) {
	if c.Types == nil {
		c.Types = map[string]roofline.Efficiency{}
	}
	for typ, near := range other.Types {
		if _, known := c.Types[typ]; !known {
			c.Types[typ] = near
		}
	}
	c.Measured = append(c.Measured, other.Measured...)
	c.Errors = append(c.Errors, other.Errors...)
	slices.Sort(c.Errors)
}
