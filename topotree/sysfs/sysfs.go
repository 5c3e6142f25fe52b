package sysfs

import (
	"errors"
	"fmt"
	"io/fs"

	"sandwich/topotree"
)

// readLive reads the machine of this process from its sysfs and procfs. mask is the affinity of the
// process. If the description is unusable, it returns a flat tree of the mask.
func readLive(fsys fs.FS, mask topotree.CPUSet) (*topotree.Machine, error) {
	m, err := readSysfs(&reader{fsys: fsys, m: &topotree.Machine{Source: "live linux"}, live: true, affinity: mask})
	if err == nil {
		return m, nil
	}
	reason := err.Error()
	if errors.Is(err, ErrNotLinux) {
		reason = "/" + cpuDir + " does not exist"
	}
	return readFlat(fsys, mask, reason)
}

// readFlat returns a machine with one package and one memory node, and a core for each PU of the
// mask.
func readFlat(fsys fs.FS, mask topotree.CPUSet, reason string) (*topotree.Machine, error) {
	r := &reader{fsys: fsys, m: &topotree.Machine{Source: "affinity mask", Online: mask}, live: true, affinity: mask}
	r.m.Warning = fmt.Sprintf("the topology of this machine is unknown (%s): the %d CPUs of the affinity mask (%s) "+
		"count as cores of one package; mount sysfs at /sys to use caches and NUMA nodes", reason, mask.Count(),
		mask.Brief())
	r.note("%s", r.m.Warning)
	r.m.Objects = []topotree.Object{{Kind: topotree.KindPackage, ID: -1, CPUs: mask}}
	for c := range mask.All() {
		r.m.Objects = append(r.m.Objects, topotree.Object{Kind: topotree.KindCore, ID: c, CPUs: topotree.NewCPUSet(c)})
	}
	r.m.Memory = []topotree.MemoryNode{{ID: 0, CPUs: mask, Bytes: r.memTotal("proc/meminfo")}}
	for _, step := range []func() error{r.readIdentity, r.readAllowed} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return topotree.Build(r.m)
}

func readSysfs(r *reader) (*topotree.Machine, error) {
	if !r.exists(cpuDir) {
		return nil, ErrNotLinux
	}
	steps := []func() error{r.readOnline, r.readIdentity, r.readCPUs, r.readNodes, r.readCoreTypes, r.readAllowed}
	for _, step := range steps {
		if err := step(); err != nil {
			return nil, fmt.Errorf("reading sysfs: %w", err)
		}
	}
	m, err := topotree.Build(r.m)
	if err != nil {
		return nil, fmt.Errorf("reading sysfs: %w", err)
	}
	return m, nil
}

// Read reads a saved copy of the sysfs and procfs of a Linux machine below the root of fsys.
// It reads at most a few MiB of each file and follows no absolute paths. The affinity in
// proc/self/status determines the allowed PUs.
func Read(fsys fs.FS) (*topotree.Machine, error) {
	return readSysfs(&reader{fsys: fsys, m: &topotree.Machine{Source: "linux sysfs"}})
}
