package sysfs

import (
	"strings"
	"testing"

	"sandwich/topotree/internal/topotest"
)

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
		m, err := Read(mapRoot(files))
		if err != nil && strings.Contains(err.Error(), "\n") {
			return // the sentence quotes the input
		}
		topotest.CheckSound(t, m, err)
	})
}
