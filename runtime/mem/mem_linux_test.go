package mem

import (
	"errors"
	"testing"
	"testing/fstest"
)

func TestResidency(t *testing.T) {
	if !Mapped {
		t.Skip("race builds keep buffers on the Go heap; run without -race")
	}
	b := alloc(t, 9000*pageSize, Options{Node: 0})
	if b.Note() != "" {
		t.Errorf("note %q", b.Note())
	}
	r, err := b.Residency()
	if err != nil {
		t.Fatal(err)
	}
	if !r.Known {
		t.Skip("move_pages is forbidden; allow it in the seccomp profile of the container")
	}
	if len(r.Pages) != 0 || r.Absent != 9000 {
		t.Errorf("untouched: %+v", r)
	}
	b.Touch(100*pageSize, 5100*pageSize)
	if r, err = b.Residency(); err != nil || r.Absent != 4000 || r.Pages[0] != 5000 || r.Remote(0) != 0 {
		t.Errorf("touched 5000 of 9000 pages: %+v, %v", r, err)
	}
	if r, err = residencyOf(b.Bytes()[99*pageSize+5 : 101*pageSize-5]); err != nil || r.Absent != 1 || r.Pages[0] != 1 {
		t.Errorf("two pages in part: %+v, %v", r, err)
	}
	if r, err = residencyOf(nil); err != nil || len(r.Pages) != 0 {
		t.Errorf("nothing: %+v, %v", r, err)
	}
}

func TestMissingNodeIsRefused(t *testing.T) {
	if !Mapped {
		t.Skip("race builds keep buffers on the Go heap; run without -race")
	}
	before := Total()
	if _, err := Alloc(1, Options{Node: 1000}); !errors.Is(err, ErrNoNode) {
		t.Errorf("got %v", err)
	}
	if Total() != before {
		t.Error("the refused buffer is still accounted")
	}
}

func TestAvailable(t *testing.T) {
	if n := Available(); n <= 0 {
		t.Errorf("%d bytes available here", n)
	}
	file := func(s string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(s)} }
	meminfo := file("MemTotal:  9000 kB\nMemFree: 100 kB\nMemAvailable:    8000 kB\n")
	for name, c := range map[string]struct {
		files fstest.MapFS
		want  int64
	}{
		"nothing known": {fstest.MapFS{}, -1},
		"no cgroup":     {fstest.MapFS{"proc/meminfo": meminfo}, 8000 << 10},
		"v2, the parent limits": {fstest.MapFS{
			"proc/meminfo":                     meminfo,
			"proc/self/cgroup":                 file("0::/a/b\n"),
			"sys/fs/cgroup/a/b/memory.max":     file("max\n"),
			"sys/fs/cgroup/a/b/memory.current": file("1000\n"),
			"sys/fs/cgroup/a/memory.max":       file("1000000\n"),
			"sys/fs/cgroup/a/memory.current":   file("400000\n"),
			"sys/fs/cgroup/a/memory.stat":      file("anon 7\ninactive_file 100000\n"),
		}, 700000},
		"v2, a file that was read twice": {fstest.MapFS{
			"proc/meminfo":                   meminfo,
			"proc/self/cgroup":               file("0::/a\n"),
			"sys/fs/cgroup/a/memory.max":     file("1000000\n"),
			"sys/fs/cgroup/a/memory.high":    file("max\n"),
			"sys/fs/cgroup/a/memory.current": file("900000\n"),
			"sys/fs/cgroup/a/memory.stat": file("anon 100000\nactive_file 700000\ninactive_file 50000\n" +
				"slab_reclaimable 10000\nslab_unreclaimable 40000\n"),
		}, 860000},
		"v2, the soft limit": {fstest.MapFS{
			"proc/meminfo":                   meminfo,
			"proc/self/cgroup":               file("0::/a\n"),
			"sys/fs/cgroup/a/memory.max":     file("max\n"),
			"sys/fs/cgroup/a/memory.high":    file("500000\n"),
			"sys/fs/cgroup/a/memory.current": file("200000\n"),
		}, 300000},
		"v2 container whose path is not mounted": {fstest.MapFS{
			"proc/meminfo":                 meminfo,
			"proc/self/cgroup":             file("0::/kubepods/x\n"),
			"sys/fs/cgroup/memory.max":     file("5000"),
			"sys/fs/cgroup/memory.current": file("6000"),
		}, 0},
		"v1": {fstest.MapFS{
			"proc/meminfo":     meminfo,
			"proc/self/cgroup": file("12:cpuset:/other\n4:memory:/x\n1:name=systemd:/y\n"),
			"sys/fs/cgroup/memory/x/memory.limit_in_bytes": file("2000000"),
			"sys/fs/cgroup/memory/x/memory.usage_in_bytes": file("500000"),
			"sys/fs/cgroup/memory/x/memory.stat": file("inactive_file 9\ntotal_inactive_file 1000\n" +
				"total_active_file 200000"),
			"sys/fs/cgroup/memory/memory.limit_in_bytes": file("9223372036854771712"),
			"sys/fs/cgroup/memory/memory.usage_in_bytes": file("1"),
		}, 1701000},
	} {
		if got := availableIn(c.files); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

// TestAvailableOfLimits checks the memory that resource limits leave.
func TestAvailableOfLimits(t *testing.T) {
	meminfo := textFile("MemTotal:  9000 kB\nMemFree: 100 kB\nMemAvailable:    8000 kB\n")
	for name, c := range map[string]struct {
		files fstest.MapFS
		want  int64
	}{
		"address space": {fstest.MapFS{
			"proc/meminfo": meminfo,
			"proc/self/limits": textFile("Limit  Soft Limit  Hard Limit  Units\n" +
				"Max address space  5000000  unlimited  bytes\n"),
			"proc/self/status": textFile("Name:\tx\nVmSize:\t    1000 kB\nVmData:\t  10 kB\n"),
		}, 5000000 - 1000<<10},
		"data, spent": {fstest.MapFS{
			"proc/meminfo": meminfo,
			"proc/self/limits": textFile("Max data size             1000  2000  bytes\n" +
				"Max address space         5000000  unlimited  bytes\n"),
			"proc/self/status": textFile("VmSize:\t 1000 kB\nVmData:\t 10 kB\n"),
		}, 0},
		"no limits": {fstest.MapFS{
			"proc/meminfo": meminfo,
			"proc/self/limits": textFile("Max data size             unlimited            unlimited            bytes\n" +
				"Max address space         unlimited            unlimited            bytes\n"),
			"proc/self/status": textFile("VmSize:\t 9000 kB\n"),
		}, 8000 << 10},
	} {
		if got := availableIn(c.files); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

// TestAvailableOn checks the free memory of a node.
func TestAvailableOn(t *testing.T) {
	node := fstest.MapFS{"sys/devices/system/node/node3/meminfo": textFile(
		"Node 3 MemTotal: 9 kB\nNode 3 MemFree:  2 kB\nNode 3 Active(file): 1 kB\nNode 3 Inactive(file): 4 kB\n")}
	if got := availableOn(node, 3); got != 7<<10 {
		t.Errorf("node 3 has %d", got)
	}
	if got := availableOn(node, 4); got != -1 {
		t.Errorf("a node without a folder has %d", got)
	}
	node["sys/devices/system/node/has_memory"], node["proc/meminfo"] = textFile("3\n"), textFile("MemAvailable: 8 kB\n")
	if got := availableOn(node, 3); got != 8<<10 {
		t.Errorf("node 3, the only one, has %d of what the kernel has", got)
	}
	node["sys/devices/system/node/has_memory"] = textFile("0,3\n")
	if got := availableOn(node, 3); got != 7<<10 {
		t.Errorf("node 3, one of two, has %d", got)
	}
}

// textFile returns a file with a text.
func textFile(s string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(s)} }
