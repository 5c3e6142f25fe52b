package topotree

import (
	"encoding/json"
	"strings"
	"testing"
)

// sound checks what holds for every machine that a reader did not refuse.
func sound(t *testing.T, m *Machine, err error) {
	t.Helper()
	if err != nil {
		if m != nil || strings.Contains(err.Error(), "\n") {
			t.Fatalf("a refusal of more than one line, or with a machine: %v", err)
		}
		return
	}
	if err := m.Tree.Check(); err != nil {
		t.Fatal(err)
	}
	if !m.Tree.CPUs().Equal(m.Online) || !m.Allowed.In(m.Online) {
		t.Fatalf("online %s, allowed %s, tree %s", m.Online, m.Allowed, m.Tree.CPUs())
	}
	if u, err := m.Usable(); err == nil {
		if err := u.Check(); err != nil || !u.CPUs().In(m.Allowed) {
			t.Fatalf("usable: %v", err)
		}
	}
	if m.Tree.PUs() > 64 {
		return
	}
	back, err := m.Describe().Machine()
	if err != nil || back.Tree.Digest() != m.Tree.Digest() {
		t.Fatalf("described and read back, it is another machine: %v", err)
	}
	for tree := range Enumerate(m.Tree, Bounds{MaxTrees: 20}) {
		if err := tree.Check(); err != nil {
			t.Fatalf("%v: %v", tree.Transforms(), err)
		}
		tree.Sections()
	}
}

func FuzzXML(f *testing.F) {
	f.Add(xmlHead + `<object type="Machine" cpuset="0xf"><object type="NUMANode" os_index="0" cpuset="0xf" local_memory="1024"/>` +
		`<object type="Package" os_index="0" cpuset="0xf"><object type="L3Cache" cpuset="0x3" cache_size="1024"><object type="Core" cpuset="0x1"><object type="PU" os_index="0" cpuset="0x1"/></object>` +
		`<object type="Core" cpuset="0x2"><object type="PU" os_index="1"/></object></object><object type="Group" subtype="Cluster" cpuset="0xc"><object type="PU" os_index="2"/><object type="PU" os_index="3"/></object></object></object>` +
		`<distances2 type="NUMANode" nbobjs="1" indexing="os"><indexes length="2">0 </indexes><u64values length="3">10 </u64values></distances2>` +
		`<cpukind cpuset="0x3"><info name="FrequencyMaxMHz" value="3000"/></cpukind><cpukind cpuset="0xc" forced_efficiency="0"/></topology>`)
	f.Add(`<topology><object type="Machine" cpuset="0x3" online_cpuset="0x1" complete_cpuset="0x7" allowed_cpuset="0x1"><distances nbobjs="2" relative_depth="1" latency_base="10.0"><latency value="1.0"/><latency value="2.1"/><latency value="2.1"/><latency value="1.0"/></distances>` +
		`<object type="NUMANode" os_index="0" cpuset="0x1"><object type="Cache" depth="2" cache_type="0" cpuset="0x1"><object type="PU" os_index="0"/></object></object><object type="NUMANode" os_index="4" cpuset="0x0"/></object></topology>`)
	f.Fuzz(func(t *testing.T, text string) {
		m, err := ReadXML(strings.NewReader(text))
		sound(t, m, err)
	})
}

func FuzzSynthetic(f *testing.F) {
	for _, text := range []string{
		"pack:2 numa:2(memory=64GiB) l3:4(size=16MiB) core:4 pu:2", "[numa] core:4", "pu:4(indexes=6,4,2,0)",
		"group:2 group:2 l2:1 core:2", "die:2 cluster:2 l1d:1 pu:3",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		m, err := ReadSynthetic(text)
		if err != nil && strings.Contains(text, "\n") {
			return // the sentence quotes the input
		}
		sound(t, m, err)
	})
}

// FuzzSysfs builds a machine of two described CPUs and whatever else the lists name.
func FuzzSysfs(f *testing.F) {
	f.Add("0-1", "0-1", "3", "0-1", "3", "0", "1", "10 20", "0::/a\n4:cpuset:/b", "cgroup2 /c cgroup2 rw 0 0",
		"50000 100000")
	f.Add("", "1", "ffff,0", "0,1\n\x00", "", "0-1", "", "x", "", "d /dev/cpuset cpuset rw", "max 1")
	f.Fuzz(func(t *testing.T, online, threads, siblings, die, shared, node0, node1, distance, cgroup, mounts,
		cpuMax string) {
		files := map[string]string{
			cpuDir + "/online": online, nodeDir + "/node0/cpulist": node0, nodeDir + "/node1/cpumap": node1,
			nodeDir + "/node0/distance": distance, nodeDir + "/node1/distance": distance,
			"proc/self/cgroup": cgroup, "proc/mounts": mounts, "c/a/cpu.max": cpuMax, "c/cpuset.cpus": node0,
			"proc/self/status":                      "Cpus_allowed_list:" + threads,
			cpuDir + "/cpu1/topology/core_siblings": siblings, cpuDir + "/cpu1/cpu_capacity": cpuMax,
		}
		for _, c := range []string{"cpu0", "cpu1"} {
			files[cpuDir+"/"+c+"/topology/thread_siblings_list"] = threads
			files[cpuDir+"/"+c+"/topology/die_id"] = "0"
			files[cpuDir+"/"+c+"/topology/die_cpus_list"] = die
			files[cpuDir+"/"+c+"/cache/index0/level"], files[cpuDir+"/"+c+"/cache/index0/type"] = "1", "Data"
			files[cpuDir+"/"+c+"/cache/index0/shared_cpu_list"] = die
			files[cpuDir+"/"+c+"/cache/index1/level"], files[cpuDir+"/"+c+"/cache/index1/type"] = "1", "Instruction"
			files[cpuDir+"/"+c+"/cache/index1/shared_cpu_list"] = threads
			files[cpuDir+"/"+c+"/cache/index3/level"] = "3"
			files[cpuDir+"/"+c+"/cache/index3/size"] = cpuMax + "K"
			files[cpuDir+"/"+c+"/cache/index3/shared_cpu_map"] = shared
		}
		m, err := ReadSysfs(mapRoot(files))
		if err != nil && strings.Contains(err.Error(), "\n") {
			return // the sentence quotes the input
		}
		sound(t, m, err)
	})
}

func FuzzDescription(f *testing.F) {
	m, err := ReadSynthetic("pack:2 numa:2 l3:1 core:2 pu:2")
	if err != nil {
		f.Fatal(err)
	}
	text, err := json.Marshal(m.Describe())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(text))
	f.Add(`{"online":"0-3","levels":[{"kind":"l3","sets":["0-1","2-3"]}],"memory":[{"id":0,"cpus":"0,2"},{"id":1,"cpus":"1,3"}],"core_types":[{"name":"P","cpus":"0"},{"name":"E","cpus":"1-3"}],"measured":[{"name":"x","cpus":"2"}],"distances":{"nodes":[0,1],"matrix":[[10,20],[30,10]]}}`)
	f.Fuzz(func(t *testing.T, text string) {
		var d Description
		if json.Unmarshal([]byte(text), &d) != nil {
			return
		}
		m, err := d.Machine()
		sound(t, m, err)
	})
}

func FuzzTransform(f *testing.F) {
	for _, text := range []string{"group(4,1,2)", "remove(1,3)", "remove(1,1,0)", "only(0+1)", "group(2,2,2)"} {
		f.Add(text)
	}
	m, err := ReadSynthetic("numa:2 core:8 pu:2")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string) {
		x, err := ParseTransform(text)
		if err != nil {
			return
		}
		if back, err := ParseTransform(x.String()); err != nil || back != x {
			t.Fatalf("%q gives %s, which comes back as %s: %v", text, x, back, err)
		}
		if tree, err := m.Tree.Apply(x); err == nil {
			if err := tree.Check(); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func FuzzCPUSet(f *testing.F) {
	for _, text := range []string{"0-3,8", "0-31:2/8", "ff,00000000", "0x00010000,,0x0", "16383"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, parse := range []func(string) (CPUSet, error){ParseCPUSet, parseCPUMask} {
			s, err := parse(text)
			if err != nil {
				continue
			}
			if back, err := ParseCPUSet(s.String()); err != nil || !back.Equal(s) || s.Last() >= MaxPUs {
				t.Fatalf("%q gives %s, which comes back as %s: %v", text, s, back, err)
			}
		}
	})
}
