package metrics

import (
	"runtime"
	"runtime/metrics"
	"time"
)

// goMetrics returns metrics of the Go runtime under the names of the Go client of Prometheus.
func goMetrics() []Metric {
	samples := []metrics.Sample{
		{Name: "/sched/goroutines:goroutines"}, {Name: "/memory/classes/heap/objects:bytes"},
		{Name: "/memory/classes/total:bytes"}, {Name: "/gc/cycles/total:gc-cycles"},
	}
	metrics.Read(samples)
	value := func(i int) float64 {
		if samples[i].Value.Kind() != metrics.KindUint64 {
			return 0
		}
		return float64(samples[i].Value.Uint64())
	}
	return []Metric{
		{Name: "go_info", Help: "1, with the version of Go.", Value: 1,
			Labels: [][2]string{{"version", runtime.Version()}}},
		{Name: "go_goroutines", Help: "Goroutines that exist.", Value: value(0)},
		{Name: "go_memstats_heap_alloc_bytes", Help: "Bytes of live and not yet swept objects on the Go heap.",
			Value: value(1)},
		{Name: "go_memstats_sys_bytes", Help: "Bytes that the Go runtime took from the system.", Value: value(2)},
		{Name: "go_gc_cycles_total", Help: "Completed garbage collections.", Counter: true, Value: value(3)},
	}
}

// began is close to the start of the process.
var began = time.Now()

// processMetrics returns metrics of the process under the names of Prometheus' client libraries, as
// far as the system tells them.
func processMetrics() []Metric {
	out := []Metric{{Name: "process_start_time_seconds", Help: "Start of the process, in seconds since 1970.",
		Value: float64(began.UnixMilli()) / 1000}}
	return append(out, systemMetrics()...)
}
