package occupancy

import (
	"io"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"sandwich/topotree"
)

// Process is a process of this machine.
type Process struct {
	ID   int
	Name string
}

// BoundThreads returns, by PU, the processes that have a thread bound to that PU alone. root holds
// proc/. Threads of the kernel do not count, nor threads that sleep unless their process has the
// name idle.
func BoundThreads(root fs.FS, idle string) map[int][]Process {
	out := map[int][]Process{}
	names, _ := fs.Glob(root, "proc/[0-9]*/comm")
	for _, name := range names {
		dir := path.Dir(name)
		id, err := strconv.Atoi(path.Base(dir))
		if err != nil {
			continue
		}
		p := Process{id, strings.TrimSpace(readSmall(root, name))}
		tasks, _ := fs.Glob(root, dir+"/task/[0-9]*/status")
		for _, task := range tasks {
			pu, ok := boundTo(readSmall(root, task), p.Name == idle)
			if ok && !slices.Contains(out[pu], p) {
				out[pu] = append(out[pu], p)
			}
		}
	}
	return out
}

// boundTo returns the only PU that a thread may use according to its status. ok is false if there
// are several, for a kernel thread, and for a sleeping thread unless idle is set.
func boundTo(status string, idle bool) (pu int, ok bool) {
	values := map[string]string{}
	for line := range strings.Lines(status) {
		key, value, _ := strings.Cut(line, ":")
		values[key] = strings.TrimSpace(value)
	}
	_, process := values["VmSize"] // threads of the kernel have no memory of their own
	set, err := topotree.ParseCPUSet(values["Cpus_allowed_list"])
	if err != nil || set.Count() != 1 || !process || !idle && !strings.HasPrefix(values["State"], "R") {
		return 0, false
	}
	return set.First(), true
}

// readSmall returns a file of at most 64 KiB, "" if it cannot be read.
func readSmall(root fs.FS, name string) string {
	f, err := root.Open(name)
	if err != nil {
		return "" // the process ended
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, 1<<16))
	if err != nil {
		return ""
	}
	return string(data)
}
