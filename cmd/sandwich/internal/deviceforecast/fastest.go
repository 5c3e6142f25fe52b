package deviceforecast

import (
	"sandwich/plans/selection"
	"sandwich/profiles"
	"sandwich/profiles/devrates"
	"sandwich/runtime/model"
	"sandwich/runtime/phase"
)

// otherPlanGain is the predicted gain for which another plan than the first one is used.
const otherPlanGain = 1.05

// Fastest predicts for each of several plans for a device and returns the prediction for the
// fastest one. A plan other than the first one must let the device run both phases: its paths of
// weights may be slower on the cores than predicted, which has no effect then. The cores alone run
// onCores.
func Fastest(rates *devrates.Device, host *profiles.Profile, ops *model.Model, list []*selection.Choice,
	onCores *selection.Choice) (*Prediction, error) {
	fastest, err := predict(rates, host, ops, list[0], onCores)
	if err != nil {
		return nil, err
	}
	for _, c := range list[1:] {
		if p, err := predict(rates, host, ops, c, onCores); err == nil && p.replaces(fastest) {
			fastest = p
		}
	}
	return fastest, nil
}

// replaces reports whether the plan of p is to be used instead of that of q.
func (p *Prediction) replaces(q *Prediction) bool {
	return len(p.Phases) == phase.Count && float64(p.Best)*otherPlanGain < float64(q.Best)
}
