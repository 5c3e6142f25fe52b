package mem

import (
	"io/fs"
	"strconv"
	"strings"
)

// limits are the resource limits on memory (ulimit -v, ulimit -d) as /proc/self/limits names them,
// and the fields of /proc/self/status that count against them.
var limits = []struct{ limit, used string }{
	{"Max address space", "VmSize"},
	{"Max data size", "VmData"},
}

// limitLeft returns what the resource limits leave of the address space, in bytes; -1 without a
// limit.
func limitLeft(root fs.FS) int64 {
	least := int64(-1)
	text := read(root, "proc/self/limits")
	for _, l := range limits {
		most, ok := softLimit(text, l.limit)
		if !ok {
			continue
		}
		left := max(0, most-fields(root, "proc/self/status")[l.used])
		if least < 0 || left < least {
			least = left
		}
	}
	return least
}

// softLimit returns a limit from the text of /proc/self/limits; false without a limit.
func softLimit(text, name string) (int64, bool) {
	for line := range strings.Lines(text) {
		if values, ok := strings.CutPrefix(line, name); ok {
			soft, _, _ := strings.Cut(strings.TrimSpace(values), " ")
			n, err := strconv.ParseInt(soft, 10, 64)
			return n, err == nil
		}
	}
	return 0, false
}
