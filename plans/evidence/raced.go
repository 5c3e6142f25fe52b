package evidence

import (
	"fmt"
	"slices"
	"strings"
)

const slowerPrefix = "takes "

// SlowerReason is the reason for which a candidate is rejected that took so many times as long as
// the default plan in one sample.
func SlowerReason(times float64) string {
	return fmt.Sprintf(slowerPrefix+"%.2f times as long as the default plan in one sample", times)
}

// Raced reports whether arms whose names contain a text were measured: as finalists, or in the
// sample after which they were rejected.
func (e *Evidence) Raced(name string) bool {
	return slices.ContainsFunc(e.Finalists, func(a Arm) bool { return strings.Contains(a.Name, name) }) ||
		slices.ContainsFunc(e.Rejected, func(r Rejected) bool {
			return strings.Contains(r.Candidate, name) && strings.HasPrefix(r.Reason, slowerPrefix)
		})
}
