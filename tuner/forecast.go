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

// untuned is what predictions of all configurations of a machine rest on: its untuned plan, whose
// schedules they share, and its profile with what nobody measured filled in, in sentences.
func (o *SimulateOptions) untuned() (plan *plans.Plan, profile *profiles.Profile, assumed []string, err error) {
	plan, err = heuristic.Default(o.Profile, o.Shape, heuristic.Options{Compute: o.Compute, KV: o.KV, ISA: o.ISA})
	if err != nil {
		return nil, nil, nil, err
	}
	profile, assumed = candidates.Complete(o.Profile, plan.Widest(), plan.Arithmetics())
	return plan, profile, assumed, nil
}

// Forecast predicts forwards of a model under service configurations of a machine, as the ranking
// of its candidates does.
type Forecast struct {
	predictor *candidates.Predictor
	profile   *profiles.Profile
	assumed   []string
}

// NewForecast predicts for a machine and a model of the options, by their anchors if there are any.
func NewForecast(o SimulateOptions) (*Forecast, error) {
	plan, profile, assumed, err := o.untuned()
	if err != nil {
		return nil, err
	}
	predictor, err := candidates.NewPredictor(profile, plan, o.Model, candidates.Options{})
	if err != nil {
		return nil, err
	}
	if o.Anchors.known() { // others are not believed
		predictor.Calibrate(o.Anchors.Types)
	}
	return &Forecast{predictor, profile, append(assumed, candidates.Assumptions(o.Anchors.near())...)}, nil
}

// Assumed are the figures that nobody measured, one sentence each.
func (f *Forecast) Assumed() []string { return f.assumed }

// Seconds is what each of some forwards takes under the service configuration of a plan. It fails
// where the model cannot be cut for the plan's ranks.
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

// Add takes over what another calibration says of weight types that this one does not know.
func (c *Calibration) Add(other *Calibration) {
	if c.Types == nil {
		c.Types = map[string]roofline.Near{}
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
