package mem

import (
	"errors"
	"strings"
	"testing"
	"testing/fstest"
)

// TestLimitNote names the resource limit that leaves least memory.
func TestLimitNote(t *testing.T) {
	const (
		space = "Max address space         1073741824           unlimited            bytes\n"
		data  = "Max data size             268435456            unlimited            bytes\n"
		free  = "Max address space         unlimited            unlimited            bytes\n"
		small = "VmSize:\t  524288 kB\nVmData:\t  131072 kB\n"
	)
	for _, c := range []struct {
		name           string
		limits, status string
		meminfo        string
		note           []string // parts of LimitNote; nil: none
		binds          bool
		refused        bool // where 256 MiB are needed
	}{
		{"address space", space, small, "MemAvailable: 9999999 kB\n", []string{"address space", "limited to 1.0 GiB",
			"512.0 MiB are left", "ulimit -v unlimited"}, true, false},
		{"data", data + space, small, "MemAvailable: 9999999 kB\n", []string{"data segment", "limited to 256.0 MiB",
			"128.0 MiB are left", "ulimit -d unlimited"}, true, true},
		{"more than there is", space, small, "MemAvailable: 100000 kB\n", []string{"address space"}, false, false},
		{"used up", space, "VmSize:\t 9999999 kB\n", "", []string{"0 B are left"}, true, true},
		{"unlimited", free, small, "MemAvailable: 100000 kB\n", nil, false, false},
		{"nothing known", "", "", "", nil, false, false},
		{"garbage", "Max address space   -5 x bytes\nMax data size\n", small, "", nil, false, false},
	} {
		root := fstest.MapFS{"proc/self/limits": {Data: []byte(c.limits)}, "proc/self/status": {Data: []byte(c.status)},
			"proc/meminfo": {Data: []byte(c.meminfo)}}
		note := limitNote(root)
		if (note != "") != (c.note != nil) {
			t.Errorf("%s: %q", c.name, note)
		}
		for _, part := range c.note {
			if !strings.Contains(note, part) {
				t.Errorf("%s: %q, want %q", c.name, note, part)
			}
		}
		if got := bindingLimit(root); (got != "") != c.binds {
			t.Errorf("%s: what binds is %q", c.name, got)
		}
		err := checkLimit(root, 256<<20)
		if errors.Is(err, ErrNoMemory) != c.refused || err != nil && !strings.Contains(err.Error(), note) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}
