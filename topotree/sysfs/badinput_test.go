package sysfs

import (
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"
)

// mapRoot builds a root from path -> content.
func mapRoot(files map[string]string) fstest.MapFS {
	out := fstest.MapFS{}
	for name, text := range files {
		out[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return out
}

func TestSysfsRefuses(t *testing.T) {
	cases := map[string]struct {
		fs   fs.FS
		want string
	}{
		"empty root":     {mapRoot(nil), "no sys/devices/system/cpu"},
		"no cpu folders": {mapRoot(map[string]string{cpuDir + "/kernel_max": "255"}), "describes no online CPU"},
		"half a copy": {mapRoot(map[string]string{cpuDir + "/online": "0-3",
			cpuDir + "/cpu0/topology/core_id": "0"}), "CPUs 1-3 are online but have no folder"},
		"huge list":    {mapRoot(map[string]string{cpuDir + "/online": "0-99999999"}), "beyond the limit"},
		"huge folder":  {mapRoot(map[string]string{cpuDir + "/cpu99999/topology/core_id": "0"}), "beyond the limit"},
		"garbage list": {mapRoot(map[string]string{cpuDir + "/online": "zero"}), "not a CPU number"},
		"garbage mask": {mapRoot(map[string]string{cpuDir + "/online": "0",
			cpuDir + "/cpu0/topology/core_siblings": "xyz"}), "not a 32-bit hexadecimal word"},
		"overlap": {mapRoot(map[string]string{
			cpuDir + "/online":                            "0-2",
			cpuDir + "/cpu0/topology/core_siblings_list":  "0-2",
			cpuDir + "/cpu1/topology/core_id":             "0",
			cpuDir + "/cpu2/topology/core_id":             "0",
			cpuDir + "/cpu0/cache/index2/level":           "2",
			cpuDir + "/cpu0/cache/index2/type":            "Unified",
			cpuDir + "/cpu0/cache/index2/shared_cpu_list": "0-1",
			cpuDir + "/cpu2/cache/index2/level":           "2",
			cpuDir + "/cpu2/cache/index2/type":            "Unified",
			cpuDir + "/cpu2/cache/index2/shared_cpu_list": "1-2",
		}), "overlap without being equal"},
	}
	for name, c := range cases {
		if _, err := Read(c.fs); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", name, err, c.want)
		}
	}
}

// TestWideMask reads CPU 4095 out of a mask of 4096 bits.
func TestWideMask(t *testing.T) {
	mask := "80000000" + strings.Repeat(",00000000", 127)
	m, err := Read(mapRoot(map[string]string{
		cpuDir + "/online": "4095", cpuDir + "/cpu4095/topology/core_siblings": mask,
		cpuDir + "/cpu4095/topology/thread_siblings": mask,
		nodeDir + "/node0/cpumap":                    mask,
	}))
	if err != nil {
		t.Fatal(err)
	}
	if got := m.Tree.CPUs().String(); got != "4095" || m.Summary().NUMALocalities != 1 {
		t.Errorf("PUs = %s, summary %+v", got, m.Summary())
	}
}

// TestCgroups narrows Allowed and reads the quota, for cgroup v2 and v1.
func TestCgroups(t *testing.T) {
	base := map[string]string{cpuDir + "/online": "0-7", nodeDir + "/node0/cpulist": "0-7"}
	for c := range 8 {
		base[fmt.Sprintf("%s/cpu%d/topology/core_id", cpuDir, c)] = fmt.Sprint(c)
	}
	with := func(more map[string]string) map[string]string {
		all := map[string]string{}
		for _, m := range []map[string]string{base, more} {
			for k, v := range m {
				all[k] = v
			}
		}
		return all
	}
	for name, c := range map[string]struct {
		files map[string]string
		allow string
		quota float64
		pus   int
	}{
		"none": {base, "0-7", 0, 0},
		"v2": {with(map[string]string{
			"proc/mounts": "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n", "proc/self/cgroup": "0::/a/b\n",
			"sys/fs/cgroup/a/cpu.max": "250000 100000\n", "sys/fs/cgroup/a/b/cpu.max": "max 100000\n",
			"sys/fs/cgroup/a/cpuset.cpus.effective": "2-5\n",
		}), "2-5", 2.5, 3},
		"v2 fraction": {with(map[string]string{
			"proc/mounts": "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n", "proc/self/cgroup": "0::/\n",
			"sys/fs/cgroup/cpu.max": "50000 100000\n",
		}), "0-7", 0.5, 1},
		"v1": {with(map[string]string{
			"proc/mounts": "c /sys/fs/cgroup/cpuset cgroup rw,cpuset 0 0\nc " +
				"/sys/fs/cgroup/cpu,cpuacct cgroup rw,cpu,cpuacct 0 0\n",
			"proc/self/cgroup":                 "4:cpuset:/docker/x\n3:cpu,cpuacct:/docker/x\n",
			"sys/fs/cgroup/cpuset/cpuset.cpus": "0,1,6\n", "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "300000",
			"sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us": "100000",
		}), "0-1,6", 3, 3},
		"no number": {with(map[string]string{
			"proc/mounts": "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n", "proc/self/cgroup": "0::/\n",
			"sys/fs/cgroup/cpu.max": "inf 100000\n",
		}), "0-7", 0, 0},
		"more than any machine has": {with(map[string]string{
			"proc/mounts": "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n", "proc/self/cgroup": "0::/\n",
			"sys/fs/cgroup/cpu.max": "9000000000000 1000\n",
		}), "0-7", 0, 0},
		"affinity": {with(map[string]string{"proc/self/status": "Name:\tx\nCpus_allowed_list:\t3-4\n"}), "3-4", 0, 0},
	} {
		m, err := Read(mapRoot(c.files))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if q := ReadQuota(mapRoot(c.files)); q != c.quota {
			t.Errorf("%s: the quota alone is read as %g, want %g", name, q, c.quota)
		}
		if m.Allowed.String() != c.allow || m.QuotaCPUs != c.quota || m.QuotaPUs() != c.pus {
			t.Errorf("%s: allowed %s, quota %g = %d PUs; want %s, %g, %d", name, m.Allowed, m.QuotaCPUs, m.QuotaPUs(),
				c.allow, c.quota, c.pus)
		}
		if m.Tree.PUs() != 8 {
			t.Errorf("%s: the tree lost PUs: %d", name, m.Tree.PUs())
		}
	}
}
