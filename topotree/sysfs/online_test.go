package sysfs

import (
	"slices"
	"strings"
	"testing"

	"sandwich/topotree"
	"sandwich/topotree/internal/topotest"
)

// TestAffinityDecides reads machines whose list of online CPUs disagrees with their folders, as in
// containers that renumber it, saved and live.
func TestAffinityDecides(t *testing.T) {
	half := func(f fixture) fixture { // CPUs 0-7 without their topology
		for name := range f {
			if strings.Contains(name, "/topology/") {
				delete(f, name)
			}
		}
		for c := range 8 {
			f[cpuDir+"/cpu"+string(rune('0'+c))+"/crash_notes"] = "0"
		}
		return f
	}
	for _, c := range []struct {
		name            string
		files           fixture
		allowed, online string
		offline         string
		note            string
	}{
		{"one CPU far from the list", fixture{}.cores(8, upTo(32)...).online("0").affinity("24"), "24", "0-31", "", ""},
		{"list and affinity overlap", fixture{}.cores(8, upTo(32)...).online("0-3").affinity("1-4"), "1-4", "0-31", "",
			""},
		{"four CPUs on two caches", fixture{}.cores(8, upTo(32)...).online("0-3").affinity("8,9,24,25"), "8-9,24-25",
			"0-31", "", ""},
		{"only the folders of the container", fixture{}.cores(2, 8, 9, 24, 25).online("0-3").affinity("8,9,24,25"),
			"8-9,24-25", "8-9,24-25", "", "lists CPUs 0-3, which have no folder"},
		{"folders renumbered in part", fixture{}.cores(2, 2, 3, 4, 5).online("0-3").affinity("4-5"), "4-5", "2-5", "",
			"lists CPUs 0-1, which have no folder"},
		{"more listed than there are", fixture{}.cores(4, upTo(4)...).online("0-63").affinity("2"), "2", "0-3", "",
			"lists CPUs 4-63"},
		{"no list", fixture{}.cores(4, upTo(8)...).affinity("5-6"), "5-6", "0-7", "", ""},
		{"empty list", fixture{}.cores(4, upTo(8)...).online("").affinity("5-6"), "5-6", "0-7", "", ""},
		{"list of garbage", fixture{}.cores(4, upTo(8)...).online("0-\x01").affinity("5-6"), "5-6", "0-7", "",
			"online is ignored"},
		{"endless list", fixture{}.cores(4, upTo(8)...).online(strings.Repeat("0,", 1<<18)).affinity("7"), "7", "0-7",
			"", "online is ignored"},
		{"a CPU off", fixture{}.cores(4, upTo(8)...).online("0-7").affinity("0-7").with(
			fixture{cpuDir + "/cpu3/online": "0"}), "0-2,4-7", "0-2,4-7", "3", ""},
		{"a CPU off that is not listed", fixture{}.cores(4, upTo(8)...).online("0-2").affinity("2-3").with(
			fixture{cpuDir + "/cpu3/online": "0\n", cpuDir + "/present": "0-7"}), "2", "0-2,4-7", "3", ""},
		{"affinity of all possible CPUs", fixture{}.cores(4, upTo(8)...).online("0-7").affinity("0-8191"), "0-7",
			"0-7", "", ""},
		{"affinity of garbage", fixture{}.cores(4, upTo(8)...).online("0-7").affinity("0-99999999"), "0-7", "0-7", "",
			"affinity in proc/self/status is ignored"},
		{"no topology, affinity off the list", half(fixture{}.cores(8, upTo(8)...)).online("0").affinity("6-7"), "6-7",
			"0,6-7", "1-5", "no topology for 3 of 3"},
		{"no folders, affinity off the list", fixture{}.online("0-1").affinity("6"), "6", "0-1,6", "", ""},
		{"cpuset of another namespace", fixture{}.cores(8, upTo(16)...).online("0-1").affinity("12-13").with(fixture{
			"proc/mounts": "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0", "proc/self/cgroup": "0::/",
			"sys/fs/cgroup/cpuset.cpus.effective": "0-1"}), "12-13", "0-15", "", ""},
	} {
		m, err := Read(mapRoot(c.files))
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		topotest.CheckSound(t, m, err)
		if m.Allowed.String() != c.allowed || m.Online.String() != c.online || m.Offline.String() != c.offline {
			t.Errorf("%s: allowed %s, online %s, offline %s; want %s, %s, %s", c.name, m.Allowed, m.Online, m.Offline,
				c.allowed, c.online, c.offline)
		}
		if !hasNote(m, c.note) {
			t.Errorf("%s: notes %q, want %q", c.name, m.Notes, c.note)
		}
		mask, err := topotree.ParseCPUSet(c.allowed)
		if err != nil {
			t.Fatal(err)
		}
		live, err := readLive(mapRoot(c.files), mask)
		if err != nil || !live.Allowed.Equal(mask) || live.Warning != "" {
			t.Errorf("%s, live: %+v, %v", c.name, live, err)
		}
	}
}

func hasNote(m *topotree.Machine, part string) bool {
	return slices.ContainsFunc(m.Notes, func(note string) bool { return strings.Contains(note, part) }) || part == ""
}

// TestAffinityCannotBeMet reads saved machines that describe no CPU of the affinity: no other CPU
// may be used instead.
func TestAffinityCannotBeMet(t *testing.T) {
	for name, c := range map[string]struct {
		files fixture
		want  string
	}{
		"all off": {fixture{}.cores(4, upTo(4)...).online("0-3").affinity("2").with(fixture{
			cpuDir + "/cpu2/online": "0"}), "may run on CPUs 2 only"},
		"elsewhere": {fixture{}.cores(4, upTo(4)...).online("0-3").affinity("9"), "may run on CPUs 9 only"},
		"listed, and the copy lacks it": {fixture{}.cores(4, upTo(4)...).online("0-7").affinity("2-5"),
			"CPUs 4-7 are online but have no folder"},
		"unknown, and the copy lacks some": {fixture{}.cores(4, upTo(4)...).online("0-7"),
			"CPUs 4-7 are online but have no folder"},
	} {
		if m, err := Read(mapRoot(c.files)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: machine %+v, error %v, want %q", name, m, err, c.want)
		}
	}
}

// TestFlatMachine reads live machines whose sysfs cannot be used, which leaves the affinity mask.
func TestFlatMachine(t *testing.T) {
	memory := fixture{"proc/meminfo": "MemTotal: 8388608 kB\nMemFree: 1 kB\n",
		"proc/cpuinfo": "model name\t: Some CPU\n"}
	overlap := fixture{}.cores(4, upTo(8)...).online("0-7").with(fixture{
		cpuDir + "/cpu5/cache/index2/level": "2", cpuDir + "/cpu5/cache/index2/shared_cpu_list": "5-6",
		cpuDir + "/cpu7/cache/index2/level": "2", cpuDir + "/cpu7/cache/index2/shared_cpu_list": "6-7"})
	for name, c := range map[string]struct {
		files fixture
		mask  topotree.CPUSet
		bytes int64
		want  string
	}{
		"no sysfs":            {fixture{}.with(memory), topotree.NewCPUSet(0, 1), 8 << 30, "does not exist"},
		"no sysfs, no procfs": {fixture{}, topotree.NewCPUSet(3, 70), 0, "does not exist"},
		"overlapping caches":  {overlap.with(memory), topotree.CPURange(0, 7), 8 << 30, "overlap without being equal"},
		"a mask of garbage": {fixture{cpuDir + "/cpu0/topology/thread_siblings": "xyz"}, topotree.CPURange(0, 3), 0,
			"not a 32-bit hexadecimal word"},
		"a cpu beyond any": {fixture{cpuDir + "/cpu99999/topology/core_id": "0"}, topotree.NewCPUSet(0), 0,
			"beyond the limit"},
		"every CPU off": {fixture{}.cores(2, 0, 1).with(fixture{cpuDir + "/cpu0/online": "0",
			cpuDir + "/cpu1/online": "0"}), topotree.CPURange(0, 1), 0, "describes no online CPU"},
	} {
		m, err := readLive(mapRoot(c.files), c.mask)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		topotest.CheckSound(t, m, err)
		s := m.Summary()
		if !m.Allowed.Equal(c.mask) || s.Cores != c.mask.Count() || s.Packages != 1 || s.NUMALocalities != 1 ||
			m.Memory[0].Bytes != c.bytes {
			t.Errorf("%s: allowed %s, summary %+v, memory %+v", name, m.Allowed, s, m.Memory)
		}
		if !strings.Contains(m.Warning, c.want) || !hasNote(m, c.want) {
			t.Errorf("%s: warning %q, want %q", name, m.Warning, c.want)
		}
	}
	m, err := readLive(mapRoot(fixture{"proc/mounts": "c /sys/fs/cgroup cgroup2 rw 0 0", "proc/self/cgroup": "0::/",
		"sys/fs/cgroup/cpu.max": "150000 100000"}), topotree.CPURange(0, 3))
	if err != nil || m.QuotaPUs() != 2 {
		t.Errorf("the quota of a flat machine: %+v, %v", m, err)
	}
}

// TestLiveWithoutTopology checks that a live machine without topology folders, or with fewer than
// the kernel lets this process use, has a core for each CPU of the affinity mask.
func TestLiveWithoutTopology(t *testing.T) {
	for name, f := range map[string]fixture{
		"lists only":        {cpuDir + "/online": "0-63", cpuDir + "/possible": "0-63"},
		"bare folders":      {cpuDir + "/cpu0/crash_notes": "0", cpuDir + "/cpu1/crash_notes": "0"},
		"folder of another": fixture{}.cores(1, 0).online("0"),
		"nothing":           {cpuDir + "/kernel_max": "255"},
	} {
		m, err := readLive(mapRoot(f), topotree.NewCPUSet(1, 5))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		topotest.CheckSound(t, m, err)
		if m.Allowed.String() != "1,5" || m.Warning != "" {
			t.Errorf("%s: allowed %s, warning %q", name, m.Allowed, m.Warning)
		}
	}
}
