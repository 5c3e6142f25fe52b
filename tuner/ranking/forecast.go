package ranking

import (
	"fmt"

	"sandwich/plans"
	"sandwich/profiles"
	"sandwich/tuner/candidates"
	"sandwich/tuner/measure"
)

// Forecast predicts forwards of a model under service configurations of a machine, as the ranking
// of candidates does.
type Forecast struct {
	predictor *candidates.Predictor
	profile   *profiles.Profile
	assumed   []string
}

// NewForecast returns a forecast for the machine and the model of the options, calibrated by their
// anchors if there are any.
func NewForecast(o Options) (*Forecast, error) {
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
