package topotree

import (
	"io/fs"
	"math"
)

// idleQuota is how much of a CPU a quota must grant beyond whole ones before another PU is put to
// work for it: what it is throttled by would cost more than it brings.
const idleQuota = 0.1

// QuotaPUs returns how many PUs the CPU quota pays for, at least 1; 0 when there is no quota. A
// fraction counts as a PU: all of them are throttled together for a part of each period, and still
// do more than one less without pauses (measured: 1.4 times at 150 %, 1.1 times at 120 %).
func QuotaPUs(cpus float64) int {
	if cpus <= 0 {
		return 0
	}
	return max(1, int(math.Ceil(cpus-idleQuota)))
}

// QuotaPUs is QuotaPUs of the machine's quota.
func (m *Machine) QuotaPUs() int { return QuotaPUs(m.QuotaCPUs) }

// ReadQuota reads what cgroups grant to this process at present: CPU time per time, 0 when
// unlimited. fsys holds sys/ and proc/.
func ReadQuota(fsys fs.FS) float64 {
	r := sysfs{fsys: fsys, m: &Machine{}}
	groups := r.cgroupPaths()
	for _, mount := range r.cgroupMounts() {
		r.readQuota(mount, groups)
	}
	return r.m.QuotaCPUs
}

// readQuota narrows the quota by one mounted hierarchy.
func (r *sysfs) readQuota(mount cgroupMount, groups map[string]string) {
	if mount.cpu {
		r.quotaV1(mount, groups["cpu"])
	}
	if mount.v2 {
		r.quotaV2(mount, groups[""])
	}
}
