package sysfs

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"sandwich/topotree"
)

// readIdentity finds architecture, CPU model and kernel release.
func (r *reader) readIdentity() error {
	for line := range strings.SplitSeq(r.text("proc/hwloc-nofile-info"), "\n") {
		key, value, _ := strings.Cut(line, ":")
		switch value = strings.TrimSpace(value); key {
		case "Architecture":
			r.m.Arch = value
		case "OSRelease":
			r.m.Kernel = value
		}
	}
	if r.m.Kernel == "" {
		r.m.Kernel = r.text("proc/sys/kernel/osrelease")
	}
	info := cpuinfo(r.bounded("proc/cpuinfo", maxProcFile))
	if r.m.Arch == "" {
		r.m.Arch = cmp.Or(r.text("proc/sys/kernel/arch"), archOf(info))
	}
	r.m.Model = modelOf(info)
	r.modular = info["vendor_id"] == "AuthenticAMD" && info["cpu family"] == family15h
	return nil
}

// cpuinfo returns the first value of each key of /proc/cpuinfo.
func cpuinfo(text string) map[string]string {
	out := map[string]string{}
	for line := range strings.SplitSeq(text, "\n") {
		key, value, ok := strings.Cut(line, ":")
		key = strings.TrimSpace(key)
		if ok && out[key] == "" {
			out[key] = strings.Join(strings.Fields(value), " ")
		}
		if len(out) > 100 {
			break
		}
	}
	return out
}

func archOf(info map[string]string) string {
	switch {
	case info["vendor_id"] == "IBM/S390":
		return "s390x"
	case strings.Contains(" "+info["flags"]+" ", " lm "):
		return "x86_64"
	case strings.Contains(" "+info["Features"]+" ", " asimd "):
		return "aarch64"
	case info["CPU architecture"] == "7":
		return "arm"
	case strings.HasPrefix(info["cpu"], "POWER"):
		return "ppc64le"
	case info["isa"] != "":
		return "riscv64"
	}
	return ""
}

func modelOf(info map[string]string) string {
	if m := cmp.Or(info["model name"], info["Processor"], info["cpu"]); m != "" {
		return m
	}
	if info["CPU part"] != "" {
		return fmt.Sprintf("ARM implementer %s part %s", info["CPU implementer"], info["CPU part"])
	}
	return ""
}

// readCoreTypes groups heterogeneous cores into types: by the kernel's names if present, else by
// capacity, base frequency, or maximum frequency if the best is 10 % higher, since favored cores of
// one type differ by less.
func (r *reader) readCoreTypes() error {
	type named struct{ file, name string }
	var types []topotree.CoreType
	for _, n := range []named{{"cpu_core", "P"}, {"cpu_atom", "E"}, {"cpu_lowpower", "LPE"}} {
		text := r.text("sys/devices/" + n.file + "/cpus")
		set, err := topotree.ParseCPUSet(text)
		if err != nil {
			return fmt.Errorf("sys/devices/%s/cpus: %w", n.file, err)
		}
		if set = set.Intersect(r.m.Online); !set.IsEmpty() {
			types = append(types, topotree.CoreType{Name: n.name, CPUs: set})
		}
	}
	var cpus []cpuSpeed
	for c := range r.m.Online.All() {
		dir := fmt.Sprintf("%s/cpu%d", cpuDir, c)
		cpus = append(cpus, cpuSpeed{
			cpu: c, capacity: r.number(dir+"/cpu_capacity", 0),
			maxMHz:  r.number(dir+"/cpufreq/cpuinfo_max_freq", 0) / 1000,
			baseMHz: r.number(dir+"/cpufreq/base_frequency", 0) / 1000,
		})
	}
	if len(types) < 2 {
		types = classifySpeeds(cpus)
	}
	for i := range types {
		fillType(&types[i], cpus)
	}
	if len(types) > 1 {
		r.m.CoreTypes = types
	}
	return nil
}

// cpuSpeed holds the speed figures of one PU in sysfs; 0 means unknown.
type cpuSpeed struct{ cpu, capacity, maxMHz, baseMHz int }

// classifySpeeds returns the core types by speed, fastest first; at most one if all PUs are equal.
func classifySpeeds(cpus []cpuSpeed) []topotree.CoreType {
	for _, by := range []struct {
		value func(cpuSpeed) int
		slack int // values within slack percent of a type's best belong to it
	}{
		{func(s cpuSpeed) int { return s.capacity }, 0},
		{func(s cpuSpeed) int { return s.baseMHz }, 0},
		{func(s cpuSpeed) int { return s.maxMHz }, 10},
	} {
		if types := classify(cpus, by.value, by.slack); len(types) > 1 {
			return types
		}
	}
	return nil
}

func classify(cpus []cpuSpeed, value func(cpuSpeed) int, slack int) []topotree.CoreType {
	sorted := slices.Clone(cpus)
	slices.SortStableFunc(sorted, func(a, b cpuSpeed) int { return value(b) - value(a) })
	var types []topotree.CoreType
	best := 0
	for _, s := range sorted {
		v := value(s)
		if v <= 0 {
			return nil // not known for all PUs
		}
		if len(types) == 0 || v < best-best*slack/100 {
			types = append(types, topotree.CoreType{Name: fmt.Sprintf("type %d", len(types))})
			best = v
		}
		last := &types[len(types)-1]
		last.CPUs = last.CPUs.Union(topotree.NewCPUSet(s.cpu))
	}
	if len(types) == 2 {
		types[0].Name, types[1].Name = "P", "E"
	}
	return types
}

// fillType stores the best figures of the PUs of a type.
func fillType(t *topotree.CoreType, cpus []cpuSpeed) {
	for _, s := range cpus {
		if t.CPUs.Contains(s.cpu) {
			t.Capacity = max(t.Capacity, s.capacity)
			t.MaxMHz = max(t.MaxMHz, s.maxMHz)
			t.BaseMHz = max(t.BaseMHz, s.baseMHz)
		}
	}
}
