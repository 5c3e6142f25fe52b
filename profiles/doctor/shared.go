package doctor

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"sandwich/profiles/occupancy"
	"sandwich/topotree"
)

// checkShared reports PUs to which workers of several sandwich processes are bound, or a worker and
// a running thread of another program: each of them gets a part of the PU, though others may idle.
func checkShared(h Host) []Finding {
	const check = "shared PUs"
	users := occupancy.BoundThreads(h.Root, programName)
	var bound topotree.CPUSet
	servers := false
	var found []string
	for _, pu := range slices.Sorted(maps.Keys(users)) {
		bound = bound.Union(topotree.NewCPUSet(pu))
		var names []string
		worker := false
		for _, u := range users[pu] {
			names = append(names, fmt.Sprintf("%s %d", u.Name, u.ID))
			worker = worker || u.Name == programName
		}
		servers = servers || worker
		if worker && len(names) > 1 {
			found = append(found, fmt.Sprintf("threads of %s are bound to PU %d", strings.Join(names, ", "), pu))
		}
	}
	if !servers {
		return nil
	}
	if len(found) == 0 {
		return one(check, OK, "no other process has a thread bound to a PU of a worker", "")
	}
	const most = 8
	text := strings.Join(found[:min(len(found), most)], "; ")
	if len(found) > most {
		text += fmt.Sprintf("; and so on with %d other PUs", len(found)-most)
	}
	idle := h.Profile.Machine.Allowed.Minus(bound)
	if idle.IsEmpty() {
		return one(check, Note, text+"; threads are bound to every PU", "run fewer processes, or each with fewer "+
			"--threads")
	}
	return one(check, Costs, text+"; no thread is bound to "+idle.Brief(), "start one of them again without a plan, "+
		"which takes idle PUs, or on PUs of its own (taskset -c "+idle.Brief()+", a cpuset)")
}

// programName is the name of a process of this program in /proc.
const programName = "sandwich"
