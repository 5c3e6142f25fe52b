package doctor

import (
	"fmt"

	"sandwich/runtime/mem"
	"sandwich/topotree"
)

func checkHugePages(h Host) []Finding {
	switch thp := h.Profile.Host.THP; thp {
	case "":
		return one("huge pages", Note, "the system does not say", "")
	case "never":
		return one("huge pages", Costs, "transparent huge pages are off: weights lie on 4 KiB pages",
			"echo madvise > /sys/kernel/mm/transparent_hugepage/enabled")
	default:
		return one("huge pages", OK, thp, "")
	}
}

func checkNUMABalancing(h Host) []Finding {
	const check = "NUMA balancing"
	b := h.Profile.Host.NUMABalancing
	switch {
	case h.Profile.Machine.Summary().NUMALocalities < 2:
		return one(check, OK, "one node, nothing to balance", "")
	case b == "":
		return one(check, Note, "the system does not say", "")
	case b == "0":
		return one(check, OK, "off", "")
	}
	return one(check, Costs, "the kernel unmaps pages to watch who uses them, and moves weights between nodes",
		"sysctl kernel.numa_balancing=0")
}

// checkMemory reports the memory of each node and how much this process may still allocate.
func checkMemory(h Host) []Finding {
	var out []Finding
	m := h.Profile.Machine
	nearest := map[int][]int{}
	for _, o := range m.MemoryOnly() {
		nearest[o.Node] = o.Nearest
	}
	for _, n := range m.Memory {
		if n.Device || n.Bytes == 0 {
			continue
		}
		found := fmt.Sprintf("node %d: %s", n.ID, mem.FormatBytes(n.Bytes))
		if free := int64(-1); h.Live {
			if free = mem.AvailableOn(n.ID); free >= 0 {
				found += ", " + mem.FormatBytes(free) + " free"
			}
		}
		f := Finding{Check: "memory", Level: OK, Found: found}
		if n.CPUs.IsEmpty() {
			f.Level, f.Found = Note, found+", memory without PUs"
			if near := nearest[n.ID]; len(near) > 0 {
				f.Found += fmt.Sprintf(", nearest to node %d", near[0])
			}
		}
		out = append(out, f)
	}
	for _, o := range nodeless(m) {
		out = append(out, Finding{"memory", Costs, fmt.Sprintf("CPUs %s have no memory of their own node", o.Brief()),
			"populate the memory channels of that socket, or keep these CPUs out of the cpuset"})
	}
	if h.Live {
		if free := mem.Available(); free >= 0 {
			out = append(out, Finding{Check: "memory", Level: OK, Found: "this process may still take " +
				mem.FormatBytes(free)})
		}
	}
	return out
}

// nodeless returns the online CPUs that no memory node contains; empty if the machine describes no
// nodes.
func nodeless(m *topotree.Machine) []topotree.CPUSet {
	var held topotree.CPUSet
	for i := range m.Memory {
		if n := &m.Memory[i]; m.HasMemory(n) {
			held = held.Union(n.CPUs)
		}
	}
	if rest := m.Online.Minus(held); !held.IsEmpty() && !rest.IsEmpty() {
		return []topotree.CPUSet{rest}
	}
	return nil
}

func checkZoneReclaim(h Host) []Finding {
	if mode := readWord(h.Root, "proc/sys/vm/zone_reclaim_mode"); mode == "" || mode == "0" {
		return nil
	}
	return one("zone reclaim", Costs, "a full node drops the page cache of the model instead of using another "+
		"node", "sysctl vm.zone_reclaim_mode=0")
}
