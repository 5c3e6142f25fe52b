package doctor

import (
	"bufio"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strconv"
	"strings"

	"sandwich/profiles/occupancy"
	"sandwich/runtime/mem"
	"sandwich/topotree"
)

// checkPlacement reports sandwich processes whose node-bound memory is on other nodes. It reports
// nothing on a machine with one node.
func checkPlacement(h Host) []Finding {
	if h.Profile.Machine.Summary().NUMALocalities < 2 {
		return nil
	}
	names, err := fs.Glob(h.Root, "proc/[0-9]*/comm")
	if err != nil {
		return nil
	}
	var out []Finding
	for _, name := range names {
		if readWord(h.Root, name) != programName {
			continue
		}
		pid := strings.TrimSuffix(strings.TrimPrefix(name, "proc/"), "/comm")
		b := readBound(h.Root, "proc/"+pid+"/numa_maps")
		if len(b.on) == 0 {
			continue // another user's, or one that binds nothing
		}
		f := Finding{Check: "placement", Level: OK, Found: fmt.Sprintf("process %s: %s", pid, b)}
		if b.remoteFraction() >= 0.01 {
			f.Level = Costs
			f.Remedy = "a node had no room for what was bound to it: free memory there (numactl -H) or lower " +
				"--ctx, then start the process again"
		}
		out = append(out, f)
	}
	return out
}

// bound is the memory of a process that is bound to nodes.
type bound struct {
	on     map[int]int64 // bytes by node
	remote int64         // bytes on other nodes than asked for
}

func (b bound) remoteFraction() float64 {
	var all int64
	for _, n := range b.on {
		all += n
	}
	return float64(b.remote) / float64(max(all, 1))
}

func (b bound) String() string { return mem.FormatNodes(b.on, b.remoteFraction()) }

// readBound reads the lines of a numa_maps file (see numa(7)) whose policy names one node.
func readBound(root fs.FS, name string) (b bound) {
	f, err := root.Open(name)
	if err != nil {
		return b
	}
	defer f.Close()
	b.on = map[int]int64{}
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		if len(words) < 2 {
			continue
		}
		policy, home, ok := strings.Cut(words[1], ":")
		want, err := strconv.Atoi(home)
		if !ok || err != nil || policy != "prefer" && policy != "bind" {
			continue
		}
		pages := map[int]int64{}
		size := int64(4)
		for _, word := range words[2:] {
			key, value, _ := strings.Cut(word, "=")
			n, err := strconv.ParseInt(value, 10, 64)
			if err != nil {
				continue
			}
			if node, isNode := strings.CutPrefix(key, "N"); isNode {
				if id, err := strconv.Atoi(node); err == nil {
					pages[id] = n
				}
			} else if key == "kernelpagesize_kB" {
				size = n
			}
		}
		for node, n := range pages {
			b.on[node] += n * size << 10
			if node != want {
				b.remote += n * size << 10
			}
		}
	}
	return b
}

// checkShared reports PUs to which workers of several sandwich processes, or a worker and a running
// thread of another program, are bound. Each of them gets only a part of the PU.
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
	const limit = 8
	text := strings.Join(found[:min(len(found), limit)], "; ")
	if len(found) > limit {
		text += fmt.Sprintf("; and so on with %d other PUs", len(found)-limit)
	}
	idle := h.Profile.Machine.Allowed.Minus(bound)
	if idle.IsEmpty() {
		return one(check, Note, text+"; threads are bound to every PU", "run fewer processes, or each with fewer "+
			"--threads")
	}
	return one(check, Costs, text+"; no thread is bound to "+idle.Brief(), "start one of them again without a plan, "+
		"which takes idle PUs, or on PUs of its own (taskset -c "+idle.Brief()+", a cpuset)")
}

// programName is the name of this program's processes in /proc.
const programName = "sandwich"
