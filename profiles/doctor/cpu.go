package doctor

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

func checkISA(h Host) []Finding {
	id := h.Profile.Host
	has := func(name string) bool { return slices.Contains(id.ISA, name) }
	switch {
	case !h.Live:
		return nil
	case len(id.ISA) == 0:
		return one("instructions", Costs, "no vector instruction set that sandwich generates code for: the "+
			"plain-Go kernels run",
			"use a CPU with AVX2 and FMA, AVX-512 or NEON; in a virtual machine pass the host's CPU model through")
	case id.Arch == "amd64" && !has("avx512"):
		return one("instructions", Note, strings.Join(id.ISA, " ")+": no AVX-512, the AVX2 kernels run", "")
	}
	return one("instructions", OK, strings.Join(id.ISA, " "), "")
}

func checkQuota(h Host) []Finding {
	m := h.Profile.Machine
	if m.QuotaCPUs == 0 {
		return one("CPU quota", OK, "none", "")
	}
	found := fmt.Sprintf("cgroups grant %.4g CPUs of %d allowed: plans use %d", m.QuotaCPUs, m.Allowed.Count(),
		h.Profile.QuotaPUs())
	switch {
	case m.QuotaCPUs < 1:
		return one("CPU quota", Costs, found+", and it is throttled in every period", "raise cpu.max (docker "+
			"--cpus, Kubernetes limits.cpu) to a whole number of CPUs")
	case m.QuotaCPUs != math.Trunc(m.QuotaCPUs):
		return one("CPU quota", Costs, found+", throttled for a part of every period", "set cpu.max (docker "+
			"--cpus, Kubernetes limits.cpu) to a whole number, better a cpuset of that many CPUs")
	case int(m.QuotaCPUs) < m.Allowed.Count():
		return one("CPU quota", Costs, found, "give the container a cpuset of as many CPUs instead (docker "+
			"--cpuset-cpus, the static CPU manager of Kubernetes), so that threads stay where their caches are")
	}
	return one("CPU quota", OK, found, "")
}

func checkAllowed(h Host) []Finding {
	m := h.Profile.Machine
	out := m.Online.Minus(m.Allowed)
	if out.IsEmpty() {
		return one("allowed PUs", OK, "all "+strconv.Itoa(m.Online.Count()), "")
	}
	return one("allowed PUs", Note, fmt.Sprintf("cpuset and affinity leave %s of %d; not allowed: %s",
		m.Allowed.Brief(), m.Online.Count(), out.Brief()),
		"if that is not meant, start sandwich without taskset or numactl, or widen the cpuset")
}

func checkOffline(h Host) []Finding {
	off := h.Profile.Machine.Offline
	if off.IsEmpty() {
		return nil
	}
	return one("offline PUs", Note, off.Brief()+" are switched off",
		fmt.Sprintf("echo 1 > /sys/devices/system/cpu/cpu%d/online, if that is not meant", off.First()))
}

func checkGovernor(h Host) []Finding {
	g := h.Profile.Host.Governor
	switch g {
	case "":
		return one("governor", OK, "no cpufreq here: the clock is not the system's to set", "")
	case "performance":
		return one("governor", OK, g, "")
	}
	return one("governor", Costs, g+": the clock may rise late or not at all", "cpupower frequency-set -g performance")
}

func checkBoost(h Host) []Finding {
	for _, b := range []struct{ file, off string }{
		{"sys/devices/system/cpu/intel_pstate/no_turbo", "1"}, {"sys/devices/system/cpu/cpufreq/boost", "0"},
	} {
		if readWord(h.Root, b.file) == b.off {
			on := strconv.Itoa(1 - int(b.off[0]-'0'))
			return one("boost", Costs, "the CPU may not exceed its base clock", "echo "+on+" > /"+b.file)
		}
	}
	return nil
}

func checkHypervisor(h Host) []Finding {
	if !h.Profile.Host.Hypervisor {
		return nil
	}
	return one("virtual machine", Note, "the hypervisor may hide SMT siblings, shared caches and nodes",
		"sandwich probe --measure full finds them by measurement")
}
