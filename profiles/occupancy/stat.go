package occupancy

import (
	"bufio"
	"io"
	"io/fs"
	"strconv"
	"strings"
)

// usage is the time of a PU since boot in ticks of 10 ms.
type usage struct{ busy, total float64 }

// times holds the usage of each PU.
type times map[int]usage

// Columns of a line of /proc/stat after its name (proc(5)). Later columns are included in user and
// nice.
const (
	statIdle, statWait = 3, 4
	statColumns        = 8
	maxStat            = 16 << 20
)

// readTimes reads proc/stat. It returns nil in containers in which lxcfs shows a file with
// renumbered PUs.
func readTimes(root fs.FS) times {
	if renumbered(root) {
		return nil
	}
	f, err := root.Open("proc/stat")
	if err != nil {
		return nil
	}
	defer f.Close()
	out := times{}
	lines := bufio.NewScanner(io.LimitReader(f, maxStat))
	lines.Buffer(nil, maxStat) // the line of interrupts is long
	for lines.Scan() {
		name, numbers, _ := strings.Cut(lines.Text(), " ")
		digits, isCPU := strings.CutPrefix(name, "cpu")
		pu, err := strconv.Atoi(digits)
		if !isCPU || err != nil || pu < 0 {
			continue
		}
		if u, ok := parseUsage(numbers); ok {
			out[pu] = u
		}
	}
	return out
}

func parseUsage(numbers string) (u usage, ok bool) {
	fields := strings.Fields(numbers)
	if len(fields) < statColumns {
		return u, false
	}
	for i, field := range fields[:statColumns] {
		n, err := strconv.ParseUint(field, 10, 63)
		if err != nil {
			return usage{}, false
		}
		u.total += float64(n)
		if i != statIdle && i != statWait {
			u.busy += float64(n)
		}
	}
	return u, true
}

// renumbered reports whether proc/stat is a file that a container manager mounted.
func renumbered(root fs.FS) bool {
	f, err := root.Open("proc/self/mounts")
	if err != nil {
		return false
	}
	defer f.Close()
	lines := bufio.NewScanner(io.LimitReader(f, maxStat))
	for lines.Scan() {
		if words := strings.Fields(lines.Text()); len(words) > 1 && words[1] == "/proc/stat" {
			return true
		}
	}
	return false
}
