package deviceforecast

import (
	"strings"

	"sandwich/plans"
	"sandwich/runtime/phase"
)

// OpsList names the ops of phases that a device runs.
func OpsList(ops string, list []phase.Phase) string {
	if ops == plans.DenseOps && len(list) > 0 {
		return PhaseList(list) + " but for the experts"
	}
	return PhaseList(list)
}

// PhaseList names phases.
func PhaseList(list []phase.Phase) string {
	if len(list) == 0 {
		return "neither phase"
	}
	var names []string
	for _, p := range list {
		names = append(names, p.String())
	}
	return strings.Join(names, " and ")
}
