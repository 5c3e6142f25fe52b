package sysfs

import (
	"fmt"
	"slices"
	"strings"

	"sandwich/topotree"
)

// cpuFolders groups the cpuN folders of a machine.
type cpuFolders struct {
	all       topotree.CPUSet
	described topotree.CPUSet // online with a topology folder
	bare      topotree.CPUSet // online without a topology folder
	off       topotree.CPUSet // cpuN/online is 0
}

func (r *reader) cpuFolders() (cpuFolders, error) {
	numbers := r.numbered(cpuDir, "cpu")
	slices.Sort(numbers)
	if n := len(numbers); n > 0 && numbers[n-1] >= topotree.MaxPUs {
		return cpuFolders{}, fmt.Errorf("%s holds cpu%d, beyond the limit of %d CPUs", cpuDir, numbers[n-1],
			topotree.MaxPUs)
	}
	var described, bare, off []int
	for _, c := range numbers {
		dir := fmt.Sprintf("%s/cpu%d", cpuDir, c)
		switch {
		case r.text(dir+"/online") == "0":
			off = append(off, c)
		case r.exists(dir + "/topology"):
			described = append(described, c)
		default:
			bare = append(bare, c)
		}
	}
	return cpuFolders{topotree.NewCPUSet(numbers...), topotree.NewCPUSet(described...), topotree.NewCPUSet(bare...),
		topotree.NewCPUSet(off...)}, nil
}

// readOnline finds the online PUs: CPUs with a topology folder that are not offline, even if the
// list of online CPUs disagrees, since containers (LXC) renumber that list; and listed CPUs without
// a topology folder.
func (r *reader) readOnline() error {
	folders, err := r.cpuFolders()
	if err != nil {
		return err
	}
	listed, err := r.listedOnline(folders)
	if err != nil {
		return err
	}
	r.readAffinity()
	online := folders.described.Union(listed.Intersect(folders.bare))
	if folders.all.IsEmpty() {
		online = listed
	}
	switch {
	case r.live: // the affinity from the kernel is reliable
		online = online.Union(r.affinity.Minus(folders.off))
	case !r.affinity.IsEmpty() && !r.affinity.Intersects(online):
		online = online.Union(r.affinity.Intersect(folders.bare))
		if folders.all.IsEmpty() {
			online = online.Union(r.affinity)
		}
	}
	if online.IsEmpty() {
		return fmt.Errorf("%s describes no online CPU", cpuDir)
	}
	if !r.affinity.IsEmpty() && !r.affinity.Intersects(online) {
		return fmt.Errorf("this process may run on CPUs %s only, and none of them is online in %s; widen its "+
			"affinity (taskset) or its cpuset", r.affinity.Brief(), cpuDir)
	}
	if err := r.checkListed(listed, folders.all); err != nil {
		return err
	}
	r.m.Online = online
	r.m.Offline = r.present(folders.all).Union(folders.off).Minus(online)
	return nil
}

// listedOnline returns the kernel's list of online CPUs. It is empty if there is none, or if it is
// invalid and topology folders exist.
func (r *reader) listedOnline(folders cpuFolders) (topotree.CPUSet, error) {
	listed, err := topotree.ParseCPUSet(r.text(cpuDir + "/online"))
	switch {
	case err == nil:
		return listed, nil
	case folders.described.IsEmpty():
		return topotree.CPUSet{}, fmt.Errorf("%s/online: %w", cpuDir, err)
	}
	r.note("%s/online is ignored: %v", cpuDir, err)
	return topotree.CPUSet{}, nil
}

// checkListed compares the list of online CPUs with the folders. Listed CPUs without a folder are
// an error for an incomplete copy, unless this process may run on none of them.
func (r *reader) checkListed(listed, folders topotree.CPUSet) error {
	missing := listed.Minus(folders)
	if missing.IsEmpty() || folders.IsEmpty() {
		return nil
	}
	if !r.live && (r.affinity.IsEmpty() || r.affinity.Intersects(missing)) {
		return fmt.Errorf("CPUs %s are online but have no folder in %s: the copy is incomplete", missing.Brief(),
			cpuDir)
	}
	r.note("%s/online lists CPUs %s, which have no folder: the affinity of this process (%s) decides which CPUs "+
		"are used", cpuDir, missing.Brief(), r.affinity.Brief())
	return nil
}

// present returns the kernel's list of present CPUs, or the CPUs with a folder if there is no list.
func (r *reader) present(folders topotree.CPUSet) topotree.CPUSet {
	if set, err := topotree.ParseCPUSet(r.text(cpuDir + "/present")); err == nil && !set.IsEmpty() {
		return set
	}
	return folders
}

// readAffinity reads the affinity of the process from proc/self/status unless the caller set it.
func (r *reader) readAffinity() {
	if !r.affinity.IsEmpty() {
		return
	}
	for line := range strings.SplitSeq(r.text("proc/self/status"), "\n") {
		list, ok := strings.CutPrefix(line, "Cpus_allowed_list:")
		if !ok {
			continue
		}
		if set, err := topotree.ParseCPUSet(list); err == nil {
			r.affinity = set
		} else {
			r.note("the affinity in proc/self/status is ignored: %v", err)
		}
	}
}
