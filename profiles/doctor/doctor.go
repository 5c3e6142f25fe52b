// Package doctor reports the settings of a host that cost speed, with the remedy for each, and the
// energy counters of the host. It changes nothing and measures nothing: it reads a host profile and
// the system's own files.
package doctor

// Diagnose runs all checks and returns their findings in order of importance.
func Diagnose(h Host) []Finding {
	var out []Finding
	for _, check := range []func(Host) []Finding{
		checkISA, checkQuota, checkAllowed, checkOffline, checkGovernor, checkBoost, checkHugePages,
		checkNUMABalancing, checkMemory, checkPlacement, checkZoneReclaim, checkShared, checkLoad, checkSteal,
		checkHypervisor, checkEnergy,
	} {
		out = append(out, check(h)...)
	}
	return out
}
