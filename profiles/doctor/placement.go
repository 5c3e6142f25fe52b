package doctor

import (
	"bufio"
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"sandwich/runtime/mem"
)

// checkPlacement looks at sandwich processes of this machine: on which nodes what they bound to a
// node lies. Nothing to say where there is one node.
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

// bound is the memory of a process that was bound to nodes.
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
