package plans_test

import (
	"sandwich/plans"
	"sandwich/plans/heuristic"
	"sandwich/profiles"
)

func init() {
	plans.MakeDefault = func(h *profiles.Profile, s plans.ModelShape, compute, isa string, ranks int) (*plans.Plan,
		error) {
		return heuristic.Default(h, s, heuristic.Options{Compute: compute, ISA: isa, TP: ranks})
	}
}
