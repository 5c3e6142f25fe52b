package sysfs

import (
	"fmt"
	"maps"
	"strings"

	"sandwich/topotree"
)

// fixture is the sysfs and procfs of a machine under construction: path to content.
type fixture map[string]string

// cores adds cpuN folders with a topology, one core a CPU, and an L3 for each l3 of them.
func (f fixture) cores(l3 int, cpus ...int) fixture {
	for i, c := range cpus {
		group := topotree.NewCPUSet(cpus[i/l3*l3 : min(len(cpus), (i/l3+1)*l3)]...).String()
		dir := fmt.Sprintf("%s/cpu%d", cpuDir, c)
		maps.Copy(f, fixture{
			dir + "/topology/physical_package_id": "0", dir + "/topology/core_id": fmt.Sprint(c),
			dir + "/topology/package_cpus_list": topotree.NewCPUSet(cpus...).String(),
			dir + "/topology/core_cpus_list":    fmt.Sprint(c),
			dir + "/cache/index3/level":         "3", dir + "/cache/index3/type": "Unified",
			dir + "/cache/index3/size": "16384K", dir + "/cache/index3/shared_cpu_list": group,
		})
	}
	return f
}

// online adds the kernel's list of online CPUs.
func (f fixture) online(list string) fixture {
	f[cpuDir+"/online"] = list
	return f
}

// affinity adds the affinity of the process.
func (f fixture) affinity(list string) fixture {
	f["proc/self/status"] = "Name:\tcat\nCpus_allowed_list:\t" + list + "\nThreads:\t1\n"
	return f
}

// node adds a NUMA node of some GiB; distances are its row of the table, "" for none.
func (f fixture) node(id int, cpus string, gib int, distances string) fixture {
	dir := fmt.Sprintf("%s/node%d", nodeDir, id)
	f[dir+"/cpulist"] = cpus
	f[dir+"/meminfo"] = fmt.Sprintf("Node %d MemTotal: %d kB", id, gib<<20)
	if distances != "" {
		f[dir+"/distance"] = distances
	}
	return f
}

// nodes adds n NUMA nodes with the same CPUs and gib GiB each, as emulation makes them.
func (f fixture) nodes(n int, cpus string, gib int) fixture {
	for id := range n {
		f.node(id, cpus, gib, strings.TrimSpace(strings.Repeat("10 ", n)))
	}
	return f
}

// with adds files.
func (f fixture) with(files fixture) fixture {
	maps.Copy(f, files)
	return f
}

func upTo(n int) []int { return topotree.CPURange(0, n-1).Slice() }
