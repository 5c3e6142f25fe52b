package topotree

import "math"

// idleQuota is the minimum fraction of a CPU beyond whole ones for which a quota adds another PU;
// for less, throttling costs more than the PU gains.
const idleQuota = 0.1

// QuotaPUs returns the number of PUs that a CPU quota allows, at least 1, or 0 without a quota. A
// fraction counts as a PU: all PUs are throttled together for a part of each period, which is still
// faster than one PU less.
func QuotaPUs(cpus float64) int {
	if !(cpus > 0) {
		return 0
	}
	return max(1, int(math.Ceil(min(cpus, math.MaxInt32)-idleQuota)))
}

// QuotaPUs returns the number of PUs that the machine's quota allows; see the function QuotaPUs.
func (m *Machine) QuotaPUs() int { return QuotaPUs(m.QuotaCPUs) }
