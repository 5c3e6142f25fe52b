package bundle

import (
	"slices"

	"sandwich/plans/evidence"
)

// State describes in words how a plan was measured.
type State string

// States of a plan.
const (
	Untuned     State = "untuned"
	Tuned       State = "tuned"
	DefaultKept State = "default kept, measured" // no candidate was faster than the default plan
)

// State returns the state of the bundle's plan.
func (b *Bundle) State() State {
	outcomes := b.Evidence.Outcomes()
	switch {
	case !b.Plan.Tuned:
		return Untuned
	case len(outcomes) > 0 && !slices.ContainsFunc(outcomes, func(o evidence.Outcome) bool { return !o.Kept }):
		return DefaultKept
	}
	return Tuned
}
