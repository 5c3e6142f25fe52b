package main

import (
	"fmt"
	"io/fs"
	"math"
	"slices"
	"strconv"
	"strings"

	"sandwich/profiles"
	"sandwich/runtime/mem"
	"sandwich/topotree"
)

// Levels of a finding.
const (
	levelOK    = "ok"
	levelNote  = "note"  // worth knowing; nothing to win by a setting
	levelCosts = "costs" // costs speed, and there is a remedy
)

// finding is what one check of doctor found.
type finding struct {
	Check  string `json:"check"`
	Level  string `json:"level"`
	Found  string `json:"found"`
	Remedy string `json:"remedy,omitempty"`
}

// patient is the host that doctor looks at.
type patient struct {
	profile *profiles.Profile
	root    fs.FS // holds sys/ and proc/
	live    bool
}

// diagnose runs every check, in the order in which people should care.
func diagnose(p patient) []finding {
	var out []finding
	for _, check := range []func(patient) []finding{
		checkISA, checkQuota, checkAllowed, checkOffline, checkGovernor, checkBoost, checkHugePages,
		checkNUMABalancing, checkMemory, checkPlacement, checkZoneReclaim, checkLoad, checkSteal, checkHypervisor,
	} {
		out = append(out, check(p)...)
	}
	return out
}

func one(check, level, found, remedy string) []finding {
	return []finding{{check, level, found, remedy}}
}

func checkISA(p patient) []finding {
	id := p.profile.Host
	has := func(name string) bool { return slices.Contains(id.ISA, name) }
	switch {
	case !p.live:
		return nil
	case len(id.ISA) == 0:
		return one("instructions", levelCosts, "no vector instruction set that sandwich generates code for: the plain-Go kernels run",
			"use a CPU with AVX2 and FMA, AVX-512 or NEON; in a virtual machine pass the host's CPU model through")
	case id.Arch == "amd64" && !has("avx512"):
		return one("instructions", levelNote, strings.Join(id.ISA, " ")+": no AVX-512, the AVX2 kernels run", "")
	}
	return one("instructions", levelOK, strings.Join(id.ISA, " "), "")
}

func checkQuota(p patient) []finding {
	m := p.profile.Machine
	if m.QuotaCPUs == 0 {
		return one("CPU quota", levelOK, "none", "")
	}
	found := fmt.Sprintf("cgroups grant %.4g CPUs of %d allowed: plans use %d", m.QuotaCPUs, m.Allowed.Count(), p.profile.QuotaPUs())
	switch {
	case m.QuotaCPUs < 1:
		return one("CPU quota", levelCosts, found+", and it is throttled in every period", "raise cpu.max (docker --cpus, Kubernetes limits.cpu) to a whole number of CPUs")
	case m.QuotaCPUs != math.Trunc(m.QuotaCPUs):
		return one("CPU quota", levelCosts, found+", throttled for a part of every period", "set cpu.max (docker --cpus, Kubernetes limits.cpu) to a whole number, better a cpuset of that many CPUs")
	case int(m.QuotaCPUs) < m.Allowed.Count():
		return one("CPU quota", levelCosts, found, "give the container a cpuset of as many CPUs instead (docker --cpuset-cpus, the static CPU manager of Kubernetes), so that threads stay where their caches are")
	}
	return one("CPU quota", levelOK, found, "")
}

func checkAllowed(p patient) []finding {
	m := p.profile.Machine
	out := m.Online.Minus(m.Allowed)
	if out.IsEmpty() {
		return one("allowed PUs", levelOK, "all "+strconv.Itoa(m.Online.Count()), "")
	}
	return one("allowed PUs", levelNote, fmt.Sprintf("cpuset and affinity leave %s of %d; not allowed: %s", shortSet(m.Allowed), m.Online.Count(), shortSet(out)),
		"if that is not meant, start sandwich without taskset or numactl, or widen the cpuset")
}

func checkOffline(p patient) []finding {
	off := p.profile.Machine.Offline
	if off.IsEmpty() {
		return nil
	}
	return one("offline PUs", levelNote, shortSet(off)+" are switched off",
		fmt.Sprintf("echo 1 > /sys/devices/system/cpu/cpu%d/online, if that is not meant", off.First()))
}

func checkGovernor(p patient) []finding {
	g := p.profile.Host.Governor
	switch g {
	case "":
		return one("governor", levelOK, "no cpufreq here: the clock is not the system's to set", "")
	case "performance":
		return one("governor", levelOK, g, "")
	}
	return one("governor", levelCosts, g+": the clock may rise late or not at all", "cpupower frequency-set -g performance")
}

func checkBoost(p patient) []finding {
	for _, b := range []struct{ file, off string }{
		{"sys/devices/system/cpu/intel_pstate/no_turbo", "1"}, {"sys/devices/system/cpu/cpufreq/boost", "0"},
	} {
		if readWord(p.root, b.file) == b.off {
			on := strconv.Itoa(1 - int(b.off[0]-'0'))
			return one("boost", levelCosts, "the CPU may not exceed its base clock", "echo "+on+" > /"+b.file)
		}
	}
	return nil
}

func checkHugePages(p patient) []finding {
	switch thp := p.profile.Host.THP; thp {
	case "":
		return one("huge pages", levelNote, "the system does not say", "")
	case "never":
		return one("huge pages", levelCosts, "transparent huge pages are off: weights lie on 4 KiB pages", "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled")
	default:
		return one("huge pages", levelOK, thp, "")
	}
}

func checkNUMABalancing(p patient) []finding {
	const check = "NUMA balancing"
	b := p.profile.Host.NUMABalancing
	switch {
	case p.profile.Machine.Summary().NUMALocalities < 2:
		return one(check, levelOK, "one node, nothing to balance", "")
	case b == "":
		return one(check, levelNote, "the system does not say", "")
	case b == "0":
		return one(check, levelOK, "off", "")
	}
	return one(check, levelCosts, "the kernel unmaps pages to watch who uses them, and moves weights between nodes", "sysctl kernel.numa_balancing=0")
}

// checkMemory says how much memory each node has, and what this process may still take.
func checkMemory(p patient) []finding {
	var out []finding
	m := p.profile.Machine
	for _, n := range m.Memory {
		if n.Device || n.Bytes == 0 {
			continue
		}
		found := fmt.Sprintf("node %d: %s", n.ID, mem.FormatBytes(n.Bytes))
		if free := int64(-1); p.live {
			if free = mem.AvailableOn(n.ID); free >= 0 {
				found += ", " + mem.FormatBytes(free) + " free"
			}
		}
		f := finding{Check: "memory", Level: levelOK, Found: found}
		if n.CPUs.IsEmpty() {
			f.Level, f.Found = levelNote, found+", no CPU is near it"
		}
		out = append(out, f)
	}
	for _, o := range nodeless(m) {
		out = append(out, finding{"memory", levelCosts, fmt.Sprintf("CPUs %s have no memory of their own node", shortSet(o)),
			"populate the memory channels of that socket, or keep these CPUs out of the cpuset"})
	}
	if p.live {
		if free := mem.Available(); free >= 0 {
			out = append(out, finding{Check: "memory", Level: levelOK, Found: "this process may still take " + mem.FormatBytes(free)})
		}
	}
	return out
}

// nodeless lists the online CPUs that no memory node holds, none where the machine describes no nodes.
func nodeless(m *topotree.Machine) []topotree.CPUSet {
	var held topotree.CPUSet
	for _, n := range m.Memory {
		held = held.Union(n.CPUs)
	}
	if rest := m.Online.Minus(held); !held.IsEmpty() && !rest.IsEmpty() {
		return []topotree.CPUSet{rest}
	}
	return nil
}

func checkZoneReclaim(p patient) []finding {
	if mode := readWord(p.root, "proc/sys/vm/zone_reclaim_mode"); mode == "" || mode == "0" {
		return nil
	}
	return one("zone reclaim", levelCosts, "a full node drops the page cache of the model instead of using another node", "sysctl vm.zone_reclaim_mode=0")
}

// checkLoad tells of other work: a plan tuned beside it is tuned for it.
func checkLoad(p patient) []finding {
	load, err := strconv.ParseFloat(readWord(p.root, "proc/loadavg"), 64)
	if err != nil || !p.live {
		return nil
	}
	pus := p.profile.Machine.Allowed.Count()
	found := fmt.Sprintf("%.2f runnable threads over the last minute on %s", load, plural(pus, "PU"))
	if load > 0.25*float64(pus) {
		return one("other load", levelCosts, found, "stop what else runs before tuning or benchmarking; see top")
	}
	return one("other load", levelOK, found, "")
}

// checkSteal reads how much time the hypervisor gave to others since boot.
func checkSteal(p patient) []finding {
	fields := strings.Fields(readLine(p.root, "proc/stat"))
	if len(fields) < 9 || fields[0] != "cpu" {
		return nil
	}
	total, steal := 0.0, 0.0
	for i, f := range fields[1:9] {
		v, err := strconv.ParseFloat(f, 64)
		if err != nil {
			return nil
		}
		if i != 3 && i != 4 { // idle and waiting
			total += v
		}
		if i == 7 {
			steal = v
		}
	}
	if total == 0 || steal/total < 0.02 {
		return nil
	}
	return one("stolen time", levelCosts, fmt.Sprintf("the hypervisor gave %.0f %% of the busy time since boot to other machines", 100*steal/total),
		"use dedicated CPUs; tune with a larger --budget, since the noise is not yours")
}

func checkHypervisor(p patient) []finding {
	if !p.profile.Host.Hypervisor {
		return nil
	}
	return one("virtual machine", levelNote, "the hypervisor may hide SMT siblings, shared caches and nodes", "sandwich probe --measure full finds them by measurement")
}

// readLine is the first line of a small file, empty where it cannot be read.
func readLine(root fs.FS, name string) string {
	f, err := root.Open(name)
	if err != nil {
		return ""
	}
	defer f.Close()
	buf := make([]byte, 4096)
	n, _ := f.Read(buf)
	first, _, _ := strings.Cut(string(buf[:n]), "\n")
	return first
}

// readWord is the first word of a small file.
func readWord(root fs.FS, name string) string {
	if words := strings.Fields(readLine(root, name)); len(words) > 0 {
		return words[0]
	}
	return ""
}
