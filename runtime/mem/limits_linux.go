package mem

import (
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
)

// limit is a resource limit on memory.
type limit struct {
	name  string // in /proc/self/limits
	used  string // field of /proc/self/status that counts against it
	what  string // the limited resource, for messages
	flag  string // option of ulimit
	bytes int64
	left  int64
}

var limits = []limit{
	{name: "Max address space", used: "VmSize", what: "address space", flag: "-v"},
	{name: "Max data size", used: "VmData", what: "data segment", flag: "-d"},
}

// tightest returns the resource limit that leaves the least memory, or false without a limit.
func tightest(root fs.FS) (smallest limit, found bool) {
	text := read(root, "proc/self/limits")
	for _, l := range limits {
		var ok bool
		if l.bytes, ok = softLimit(text, l.name); !ok {
			continue
		}
		l.left = max(0, l.bytes-fields(root, "proc/self/status")[l.used])
		if !found || l.left < smallest.left {
			smallest, found = l, true
		}
	}
	return smallest, found
}

// limitLeft returns the memory in bytes that the resource limits leave to this process, or -1
// without a limit.
func limitLeft(root fs.FS) int64 {
	if l, found := tightest(root); found {
		return l.left
	}
	return -1
}

// LimitNote returns a clause that names the resource limit that leaves this process the least
// memory, and how to raise it. It returns "" without such a limit.
func LimitNote() string { return limitNote(os.DirFS("/")) }

func limitNote(root fs.FS) string {
	l, found := tightest(root)
	if !found {
		return ""
	}
	return fmt.Sprintf("the %s of this process is limited to %s (ulimit %s), of which %s are left; raise the limit "+
		"with `ulimit %s unlimited`", l.what, FormatBytes(l.bytes), l.flag, FormatBytes(l.left), l.flag)
}

// BindingLimit returns LimitNote if a resource limit determines Available, and "" if the memory of
// the machine or of a cgroup does.
func BindingLimit() string { return bindingLimit(os.DirFS("/")) }

func bindingLimit(root fs.FS) string {
	const slack = 1 << 20 // memory allocated between two readings
	if left := limitLeft(root); left < 0 || left > availableIn(root)+slack {
		return ""
	}
	return limitNote(root)
}

// CheckLimit returns ErrNoMemory if a resource limit leaves fewer than minimum bytes.
func CheckLimit(minimum int64) error { return checkLimit(os.DirFS("/"), minimum) }

func checkLimit(root fs.FS, minimum int64) error {
	if left := limitLeft(root); left < 0 || left >= minimum {
		return nil
	}
	return fmt.Errorf("%w: at least %s are needed, and %s", ErrNoMemory, FormatBytes(minimum), limitNote(root))
}

// softLimit returns a soft limit from the text of /proc/self/limits, or false without a limit.
func softLimit(text, name string) (int64, bool) {
	for line := range strings.Lines(text) {
		if values, ok := strings.CutPrefix(line, name); ok {
			soft, _, _ := strings.Cut(strings.TrimSpace(values), " ")
			n, err := strconv.ParseInt(soft, 10, 64)
			return n, err == nil && n >= 0
		}
	}
	return 0, false
}
