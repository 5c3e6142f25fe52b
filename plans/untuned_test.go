package plans_test

import (
	"sandwich/plans"
	"sandwich/plans/thumb"
	"sandwich/profiles"
)

func init() {
	plans.MakeDefault = func(h *profiles.Profile, s plans.ModelShape, compute, isa string, ranks int) (*plans.Plan,
		error) {
		return thumb.Default(h, s, thumb.Options{Compute: compute, ISA: isa, TP: ranks})
	}
}
