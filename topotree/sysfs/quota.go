package sysfs

import (
	"io/fs"

	"sandwich/topotree"
)

// ReadQuota returns the current CPU quota of this process in CPUs, 0 if unlimited. fsys contains
// sys/ and proc/.
func ReadQuota(fsys fs.FS) float64 {
	r := reader{fsys: fsys, m: &topotree.Machine{}}
	groups := r.cgroupPaths()
	for _, mount := range r.cgroupMounts() {
		r.readQuota(mount, groups)
	}
	return r.m.QuotaCPUs
}
