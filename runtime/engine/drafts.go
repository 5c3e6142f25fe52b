package engine

import (
	"sandwich/profiles"
	"sandwich/runtime/engine/drafting"
	"sandwich/runtime/engine/forward"
	"sandwich/runtime/engine/steptimes"
)

// newDrafting returns the state of speculation for decode batches of up to rows rows, and whether
// recurrent states in drafts are to be copied. The profile may be nil.
func newDrafting(o drafting.Options, r *forward.Runner, p *profiles.Profile, rows int,
) (d *drafting.Drafting, copies bool, err error) {
	curves, err := steptimes.Estimate(r.Model, r.Plan, p, rows)
	if err != nil {
		return nil, false, err
	}
	state := r.Assembly().States.Each()
	copies = state > 0 && copiesStates(o.Rollback, curves[0].Times, steptimes.Copy(state, r.Plan, p))
	return drafting.New(o, curves, state > 0 && !copies), copies, nil
}

// copiesPerReplay is the assumed number of states that are copied for each row that need not be
// computed again: a step copies the state after each drafted token, and accepted tokens are
// computed again only after a draft that was rejected in part.
const copiesPerReplay = 4

// copiesStates chooses how recurrent states return to the last accepted token of a draft: by
// copies, of which one takes some seconds, or by a further row in a later step. steps are the
// seconds of steps of 1, 2, ... rows.
func copiesStates(o drafting.Rollback, steps []float64, seconds float64) bool {
	switch {
	case o != drafting.RollbackByCost:
		return o == drafting.RollbackCopy
	case len(steps) < 2:
		return false
	}
	return copiesPerReplay*seconds < steps[1]-steps[0]
}
