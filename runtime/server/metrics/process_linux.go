package metrics

import (
	"math"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// systemMetrics returns the metrics of the process that Linux reports. Metrics that cannot be read
// are left out.
func systemMetrics() (out []Metric) {
	add := func(name, help string, v float64) { out = append(out, Metric{Name: name, Help: help, Value: v}) }
	var used syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &used) == nil {
		seconds := func(t syscall.Timeval) float64 { return float64(t.Sec) + float64(t.Usec)/1e6 }
		out = append(out, Metric{Name: "process_cpu_seconds_total", Help: "CPU time, user and system.", Counter: true,
			Value: seconds(used.Utime) + seconds(used.Stime)})
	}
	if open, err := os.ReadDir("/proc/self/fd"); err == nil {
		add("process_open_fds", "Open file descriptors.", float64(len(open)-1)) // one is that of the folder
	}
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) == nil {
		add("process_max_fds", "Maximum number of open file descriptors.", float64(limit.Cur))
	}
	if syscall.Getrlimit(syscall.RLIMIT_AS, &limit) == nil {
		space := float64(limit.Cur)
		if limit.Cur == math.MaxUint64 {
			space = -1 // unlimited, as in other exporters
		}
		add("process_virtual_memory_max_bytes", "Maximum size of the address space; -1: unlimited.", space)
	}
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return out
	}
	for i, f := range strings.Fields(string(text)) {
		pages, err := strconv.ParseUint(f, 10, 63)
		bytes := float64(pages) * float64(os.Getpagesize())
		switch {
		case err != nil || i > 1:
			return out
		case i == 0:
			add("process_virtual_memory_bytes", "Size of the address space.", bytes)
		default:
			add("process_resident_memory_bytes", "Resident memory.", bytes)
		}
	}
	return out
}
