package mem

import (
	"io/fs"
	"math"
	"os"
	"path"
	"strconv"
	"strings"
)

// Available returns the memory in bytes that this process may still use: the least of the memory
// that the kernel can provide without swapping and what memory cgroups and resource limits of the
// process leave. It returns -1 if none of these is known.
func Available() int64 { return availableIn(os.DirFS("/")) }

// AvailableOn returns the free memory of one NUMA node in bytes, including its page cache, which
// the kernel frees on demand. For the only node it returns [Available] if that is known, because
// the node's own meminfo counts too little in virtual machines whose memory grew. It returns -1 if
// the node is unknown.
func AvailableOn(node int) int64 { return availableOn(os.DirFS("/"), node) }

func availableIn(root fs.FS) int64 {
	smallest := int64(math.MaxInt64)
	if n, ok := fields(root, "proc/meminfo")["MemAvailable"]; ok {
		smallest = n
	}
	for _, group := range cgroups(root) {
		if n := group.room(root); n >= 0 {
			smallest = min(smallest, n)
		}
	}
	if n := limitLeft(root); n >= 0 {
		smallest = min(smallest, n)
	}
	if smallest == math.MaxInt64 {
		return -1
	}
	return smallest
}

func availableOn(root fs.FS, node int) int64 {
	const nodes = "sys/devices/system/node"
	text := read(root, nodes+"/node"+strconv.Itoa(node)+"/meminfo")
	if text == "" {
		return -1
	}
	if list := strings.TrimSpace(read(root, nodes+"/has_memory")); list == strconv.Itoa(node) {
		if n := availableIn(root); n >= 0 {
			return n
		}
	}
	values := parseFields(strings.ReplaceAll(text, "Node "+strconv.Itoa(node)+" ", ""))
	return values["MemFree"] + values["Active(file)"] + values["Inactive(file)"] + values["SReclaimable"]
}

// cgroup is one directory of a memory controller, with its file names.
type cgroup struct {
	dir    string
	limits []string
	usage  string
	prefix string // of the fields of memory.stat
}

// cgroups returns the directories that limit this process: that of its cgroup and all parents. In a
// container the path in /proc/self/cgroup is often not mounted. Then only the root of the mount
// exists, which is the container's own cgroup.
func cgroups(root fs.FS) []cgroup {
	var out []cgroup
	for line := range strings.Lines(read(root, "proc/self/cgroup")) {
		part := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(part) != 3 {
			continue
		}
		c := cgroup{"sys/fs/cgroup", []string{"memory.max", "memory.high"}, "memory.current", ""}
		if part[1] != "" {
			c = cgroup{"sys/fs/cgroup/memory", []string{"memory.limit_in_bytes"}, "memory.usage_in_bytes", "total_"}
			if !strings.Contains(","+part[1]+",", ",memory,") {
				continue
			}
		}
		base := c.dir
		for at := path.Clean("/" + part[2]); ; at = path.Dir(at) {
			c.dir = path.Join(base, at)
			out = append(out, c)
			if at == "/" {
				break
			}
		}
	}
	return out
}

// room returns the least limit minus the memory in use, in bytes. Like availableOn, it does not
// count page cache, which the kernel frees on demand: a model file that was read before must not
// make the model too large. It returns -1 without a limit.
func (c cgroup) room(root fs.FS) int64 {
	number := func(name string) int64 {
		n, err := strconv.ParseInt(strings.TrimSpace(read(root, path.Join(c.dir, name))), 10, 64)
		if err != nil || n >= 1<<62 { // absent, "max", or no limit in version 1
			return -1
		}
		return n
	}
	limit := int64(-1)
	for _, name := range c.limits {
		if n := number(name); n >= 0 && (limit < 0 || n < limit) {
			limit = n
		}
	}
	used := number(c.usage)
	if limit < 0 || used < 0 {
		return -1
	}
	stat := fields(root, path.Join(c.dir, "memory.stat"))
	cache := stat[c.prefix+"inactive_file"] + stat[c.prefix+"active_file"] + stat[c.prefix+"slab_reclaimable"]
	return max(limit-max(used-cache, 0), 0)
}

func read(root fs.FS, name string) string {
	text, err := fs.ReadFile(root, name)
	if err != nil {
		return ""
	}
	return string(text)
}

func fields(root fs.FS, name string) map[string]int64 { return parseFields(read(root, name)) }

// parseFields reads lines of a name, a number and optionally the unit kB. Values in kB become
// bytes.
func parseFields(text string) map[string]int64 {
	out := map[string]int64{}
	for line := range strings.Lines(text) {
		word := strings.Fields(line)
		if len(word) < 2 {
			continue
		}
		n, err := strconv.ParseInt(word[1], 10, 64)
		if err != nil {
			continue
		}
		if len(word) > 2 && word[2] == "kB" {
			n *= 1024
		}
		out[strings.TrimSuffix(word[0], ":")] = n
	}
	return out
}
