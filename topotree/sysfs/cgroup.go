package sysfs

import (
	"path"
	"strconv"
	"strings"

	"sandwich/topotree"
)

// readAllowed finds the PUs that this process may use, the CPU quota, and the memory nodes of the
// cpuset. The affinity of the process determines the PUs if it is known; for a saved copy the
// cpuset of the cgroup (v2, v1, or the older cpuset file system) limits it further. The affinity of
// a live process already includes the cpuset.
func (r *reader) readAllowed() error {
	r.m.Allowed = r.m.Online
	if !r.affinity.IsEmpty() {
		r.m.Allowed = r.m.Online.Intersect(r.affinity)
	}
	groups := r.cgroupPaths()
	for _, mount := range r.cgroupMounts() {
		if mount.cpuset && !r.live {
			r.allow(mount, groups["cpuset"])
		}
		if mount.v2 && !r.live {
			r.allow(mount, groups[""])
		}
		r.readQuota(mount, groups)
	}
	for line := range strings.SplitSeq(r.text("proc/self/status"), "\n") {
		if list, ok := strings.CutPrefix(line, "Mems_allowed_list:"); ok {
			r.restrictMems(list)
		}
	}
	return nil
}

// restrictMems records the memory nodes that a cpuset permits if it excludes any.
func (r *reader) restrictMems(list string) {
	var all []int
	for _, n := range r.m.Memory {
		all = append(all, n.ID)
	}
	nodes := topotree.NewCPUSet(all...)
	if set, err := topotree.ParseCPUSet(list); err == nil && set.Intersects(nodes) && !nodes.In(set) {
		r.m.Mems = set.Intersect(nodes)
	}
}

// restrict limits Allowed to the list of a cpuset and reports whether it did. It ignores a list
// that is invalid or leaves no PU: an empty cpuset inherits the CPUs of its parent, and the list
// may belong to another namespace.
func (r *reader) restrict(list string) bool {
	set, err := topotree.ParseCPUSet(list)
	if err != nil || !set.Intersects(r.m.Allowed) {
		return false
	}
	r.m.Allowed = r.m.Allowed.Intersect(set)
	return true
}

// cgroupMount is one mounted hierarchy. dir is relative to the root of the machine.
type cgroupMount struct {
	dir             string
	v2, cpuset, cpu bool
}

func (r *reader) cgroupMounts() []cgroupMount {
	var out []cgroupMount
	for line := range strings.SplitSeq(r.text("proc/mounts"), "\n") {
		f := strings.Fields(line)
		if len(f) < 4 {
			continue
		}
		m := cgroupMount{dir: strings.TrimPrefix(path.Clean("/"+f[1]), "/")}
		options := "," + f[3] + ","
		switch f[2] {
		case "cgroup2":
			m.v2 = true
		case "cpuset":
			m.cpuset = true
		case "cgroup":
			m.cpuset = strings.Contains(options, ",cpuset,")
			m.cpu = strings.Contains(options, ",cpu,")
		}
		if m.dir != "" && (m.v2 || m.cpuset || m.cpu) {
			out = append(out, m)
		}
	}
	return out
}

// cgroupPaths returns the group of this process by controller ("" for v2).
func (r *reader) cgroupPaths() map[string]string {
	out := map[string]string{}
	if p := r.text("proc/self/cpuset"); p != "" {
		out["cpuset"] = p
	}
	for line := range strings.SplitSeq(r.text("proc/self/cgroup"), "\n") {
		f := strings.SplitN(line, ":", 3)
		if len(f) != 3 {
			continue
		}
		for controller := range strings.SplitSeq(f[1], ",") {
			out[controller] = f[2]
		}
	}
	return out
}

// ancestors returns the folders of a group from the mount's root down. In a container the path may
// be that of the host and not exist below the mount; then only the root of the mount is readable.
func (m cgroupMount) ancestors(group string) []string {
	dirs := []string{m.dir}
	at := m.dir
	for part := range strings.SplitSeq(path.Clean("/"+group), "/") {
		if part != "" && len(dirs) < 64 {
			at += "/" + part
			dirs = append(dirs, at)
		}
	}
	return dirs
}

// allow limits Allowed by the deepest group that lists CPUs. Of version 1 it reads the configured
// list, since effective_cpus is updated late after CPU hotplug.
func (r *reader) allow(m cgroupMount, group string) {
	dirs := m.ancestors(group)
	for i := len(dirs) - 1; i >= 0; i-- {
		for _, name := range []string{"cpuset.cpus.effective", "cpuset.cpus", "cpus"} {
			if list := r.text(dirs[i] + "/" + name); list != "" && r.restrict(list) {
				return
			}
		}
	}
}

// quotaV2 applies the smallest cpu.max ("quota period" in microseconds) of the group and its
// ancestors.
func (r *reader) quotaV2(m cgroupMount, group string) {
	for _, dir := range m.ancestors(group) {
		if f := strings.Fields(r.text(dir + "/cpu.max")); len(f) == 2 {
			r.quota(f[0], f[1])
		}
	}
}

func (r *reader) quotaV1(m cgroupMount, group string) {
	for _, dir := range m.ancestors(group) {
		r.quota(r.text(dir+"/cpu.cfs_quota_us"), r.text(dir+"/cpu.cfs_period_us"))
	}
}

func (r *reader) quota(quota, period string) {
	q, err := strconv.ParseInt(quota, 10, 64)
	p, err2 := strconv.ParseInt(period, 10, 64)
	if err != nil || err2 != nil || q <= 0 || p <= 0 {
		return // "max" and -1 mean unlimited
	}
	cpus := float64(q) / float64(p)
	if cpus <= topotree.MaxPUs && (r.m.QuotaCPUs == 0 || cpus < r.m.QuotaCPUs) { // a larger one limits nothing
		r.m.QuotaCPUs = cpus
	}
}

// readQuota applies the quota of one mounted hierarchy.
func (r *reader) readQuota(mount cgroupMount, groups map[string]string) {
	if mount.cpu {
		r.quotaV1(mount, groups["cpu"])
	}
	if mount.v2 {
		r.quotaV2(mount, groups[""])
	}
}
