package topotree

import (
	"fmt"
	"io"
	"io/fs"
	"runtime"
	"strings"
	"testing"
	"testing/fstest"

	"sandwich/internal/message"
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
		if _, err := ReadSysfs(c.fs); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", name, err, c.want)
		}
	}
}

// TestWideMask reads CPU 4095 out of a mask of 4096 bits.
func TestWideMask(t *testing.T) {
	mask := "80000000" + strings.Repeat(",00000000", 127)
	m, err := ReadSysfs(mapRoot(map[string]string{
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
		"affinity": {with(map[string]string{"proc/self/status": "Name:\tx\nCpus_allowed_list:\t3-4\n"}), "3-4", 0, 0},
	} {
		m, err := ReadSysfs(mapRoot(c.files))
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

// repeated yields a document of unlimited size without holding it: a head, then the same element n
// times.
type repeated struct {
	head, body string
	n          int
	rest       string
}

func (r *repeated) Read(p []byte) (int, error) {
	if r.rest == "" {
		switch {
		case r.head != "":
			r.rest, r.head = r.head, ""
		case r.n > 0:
			r.rest = r.body
			r.n--
		default:
			return 0, io.EOF
		}
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

const xmlHead = `<?xml version="1.0"?><topology version="2.0">`

func TestXMLRefuses(t *testing.T) {
	laughs := `<?xml version="1.0"?><!DOCTYPE topology [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;"><!ENTITY c "&b;&b;&b;&b;&b;&b;&b;&b;">]><topology version="2.0"><info name="x" value="&c;"/></topology>`
	cases := map[string]struct {
		in   io.Reader
		want string
	}{
		"empty":            {strings.NewReader(""), "no topology element"},
		"not xml":          {strings.NewReader("hello"), "no topology element"},
		"another document": {strings.NewReader("<html/>"), "not a topology"},
		"future":           {strings.NewReader(`<topology version="4.1"/>`), "not 1.x, 2.x or 3.x"},
		"no PU":            {strings.NewReader(xmlHead + `<object type="Machine" cpuset="0x3"/></topology>`), "no PU"},
		"cut off":          {strings.NewReader(xmlHead + `<object type="Machine" cpuset="0x3">`), "not well-formed"},
		"billion laughs":   {strings.NewReader(laughs), "not well-formed"},
		"deep":             {&repeated{head: xmlHead, body: `<object type="Misc">`, n: 1e6}, "nest deeper"},
		"many objects": {&repeated{head: xmlHead, body: `<object type="Misc"/>`, n: 1e6},
			"more than 131072 objects"},
		"many caches": {&repeated{head: xmlHead, body: `<object type="L2Cache" cpuset="0x1"/>`, n: 1e6},
			"more than 49152"},
		"endless": {&repeated{head: xmlHead, body: strings.Repeat(" ", 1<<16), n: 1e9}, "larger than 64 MiB"},
		"PU twice": {strings.NewReader(xmlHead +
			`<object type="PU" os_index="0"/><object type="PU" os_index="0"/></topology>`), "occurs twice"},
		"PU far away": {strings.NewReader(xmlHead + `<object type="PU" os_index="99999999"/></topology>`),
			"not in 0 to"},
		"wrong PU": {strings.NewReader(xmlHead + `<object type="PU" os_index="1" cpuset="0x1"/></topology>`),
			"is inconsistent"},
		"bad mask": {strings.NewReader(xmlHead + `<object type="Core" cpuset="0xzz"/></topology>`),
			"not a 32-bit hexadecimal word"},
		"infinite set": {strings.NewReader(xmlHead + `<object type="Machine" cpuset="0xf...f"/></topology>`),
			"not a 32-bit hexadecimal word"},
	}
	for name, c := range cases {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := ReadXML(c.in)
		runtime.ReadMemStats(&after)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", name, err, c.want)
		}
		if held := int64(after.HeapAlloc) - int64(before.HeapAlloc); held > 256<<20 {
			t.Errorf("%s: %d MiB on the heap", name, held>>20)
		}
	}
}

func TestSyntheticRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"": "there is no level", "pack:0": "at least 1", "pack:-1": "at least 1", "pack:x": "at least 1",
		"blob:2 pu:2":          "is not a level",
		"core:1000000000 pu:1": "more than 16384 PUs", "pack:1000 numa:1000 core:1000": "more than 16384 PUs",
		"pu:2 core:2": "follows pu", "core:2 core:2 pu:1": "occurs twice",
		"pack:2 pu:2(indexes=0,1)": "has 2 indexes for 4",
		"pu:2(indexes=1,1)":        "duplicate index", "pu:2(indexes=0,-1)": "list of numbers", "pu:2(": "parentheses",
		"pu:2)":               "parentheses",
		"l3:1(size=abc) pu:1": "not a size", "[numa pu:2": "no closing bracket", strings.Repeat("group:1 ",
			40) + "pu:1": "more than 32 levels",
		strings.Repeat("a", maxSyntheticText+1): "longer than",
	} {
		if m, err := ReadSynthetic(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: machine %v, error %v, want %q", message.Clip(text, 60), m != nil, err, want)
		}
	}
}

func TestSyntheticCounts(t *testing.T) {
	m, err := ReadSynthetic("pack:2 numa:2(memory=64GiB) l3:4(size=16MiB) l2:1(size=512kB) core:4 pu:2")
	if err != nil {
		t.Fatal(err)
	}
	s := m.Summary()
	if s.Packages != 2 || s.NUMANodes != 4 || s.L3 != 16 || s.Cores != 64 || s.PUs != 128 || s.LLC != 16 {
		t.Errorf("%+v", s)
	}
	if m.Memory[0].Bytes != 64<<30 || m.Tree.Level(m.Tree.LevelOf(KindL3))[0].Bytes != 16<<20 {
		t.Error("sizes were not read")
	}
	if m, err = ReadSynthetic("[numa] core:4"); err != nil || m.Summary().PUs != 4 || m.Summary().NUMANodes != 1 {
		t.Errorf("%v", err)
	}
	if m, err = ReadSynthetic("pu:4(indexes=6,4,2,0)"); err != nil || m.Online.String() != "0,2,4,6" {
		t.Errorf("%v", err)
	}
}

func TestQuotaPUs(t *testing.T) {
	for cpus, want := range map[float64]int{0: 0, 0.2: 1, 1: 1, 1.05: 1, 1.2: 2, 1.5: 2, 2: 2, 2.5: 3, 64: 64} {
		if got := QuotaPUs(cpus); got != want {
			t.Errorf("a quota of %g CPUs pays for %d PUs, want %d", cpus, got, want)
		}
	}
}
