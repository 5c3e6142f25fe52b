package mem

import (
	"io/fs"
	"math"
	"os"
	"path"
	"strconv"
	"strings"
)

// Available returns the memory in bytes that this process may still use: what the kernel can free
// without swapping, less where a memory cgroup or a resource limit of the process allows less. It
// returns -1 if the system does not tell.
func Available() int64 { return availableIn(os.DirFS("/")) }

// AvailableOn is the free memory in bytes of one NUMA node, its page cache included, which the
// kernel gives up on demand; of the only node what [Available] says, since in guests whose memory
// grew the node's own file counts too little. -1 if it cannot be told.
func AvailableOn(node int) int64 { return availableOn(os.DirFS("/"), node) }

func availableIn(root fs.FS) int64 {
	least := int64(math.MaxInt64)
	if n, ok := fields(root, "proc/meminfo")["MemAvailable"]; ok {
		least = n
	}
	for _, group := range cgroups(root) {
		if n := group.room(root); n >= 0 {
			least = min(least, n)
		}
	}
	if n := limitLeft(root); n >= 0 {
		least = min(least, n)
	}
	if least == math.MaxInt64 {
		return -1
	}
	return least
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

// cgroup is one folder of a memory controller, with its file names.
type cgroup struct{ dir, limit, usage, cache string }

// cgroups are the folders that limit this process: its own and all above it. In a container the
// path that /proc/self/cgroup names is often not mounted; its upper folders then do not exist, and
// the mount's root, which is the container's own group, remains.
func cgroups(root fs.FS) []cgroup {
	var out []cgroup
	for line := range strings.Lines(read(root, "proc/self/cgroup")) {
		part := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(part) != 3 {
			continue
		}
		c := cgroup{"sys/fs/cgroup", "memory.max", "memory.current", "inactive_file"}
		if part[1] != "" {
			c = cgroup{"sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"}
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

// room is the limit less what is used and not mere cache of files; -1 without a limit.
func (c cgroup) room(root fs.FS) int64 {
	limit, err := strconv.ParseInt(strings.TrimSpace(read(root, path.Join(c.dir, c.limit))), 10, 64)
	if err != nil || limit >= 1<<62 { // absent, "max", or version 1's way to say none
		return -1
	}
	used, err := strconv.ParseInt(strings.TrimSpace(read(root, path.Join(c.dir, c.usage))), 10, 64)
	if err != nil {
		return -1
	}
	cache := fields(root, path.Join(c.dir, "memory.stat"))[c.cache]
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

// parseFields reads lines of a name, a number and perhaps the unit kB.
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
