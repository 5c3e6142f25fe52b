package metrics

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"sandwich/runtime/api"
)

// TestPreviousNames checks that metrics are also written under their previous names, with the
// labels that those had, and that series that differ only in other labels are added up.
func TestPreviousNames(t *testing.T) {
	var c Counters
	for i, model := range []string{"a", "b"} {
		c.Finished(&api.Result{Queued: time.Second}, Series{model, api.Class(i)}, time.Second)
	}
	text := string(c.Text(0, []Metric{
		{Name: "sandwich_waiting_requests", Value: 2, Labels: [][2]string{{"class", "reactive"}, {"model", "a"}}},
		{Name: "sandwich_waiting_requests", Value: 3, Labels: [][2]string{{"class", "reactive"}, {"model", "b"}}},
		{Name: "sandwich_lost_devices_total", Value: 1, Counter: true, Labels: [][2]string{{"device", "x"}}},
	}, nil))
	for _, want := range []string{
		"sandwich_request_seconds_count 2\n", "sandwich_request_seconds_sum 2\n",
		"sandwich_queue_seconds_count{class=\"reactive\"} 1\n", "sandwich_queue_seconds_count{class=\"proactive\"} 1\n",
		"# TYPE sandwich_queue_seconds histogram\n", "sandwich_engine_waiting{class=\"reactive\"} 5\n",
		"# TYPE sandwich_device_lost_total counter\nsandwich_device_lost_total{device=\"x\"} 1\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

// TestPreviousNamesAreDocumented checks the table in docs/operations.md.
func TestPreviousNamesAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range renamed {
		if row := fmt.Sprintf("| `%s` | `%s` |", r.old, r.name); !strings.Contains(string(page), row) {
			t.Errorf("docs/operations.md has no row %s", row)
		}
	}
}

// TestProcessMetrics checks that each metric of the process and of Go has a plausible value.
func TestProcessMetrics(t *testing.T) {
	for _, m := range append(goMetrics(), processMetrics()...) {
		may0 := m.Name == "go_gc_cycles_total" || m.Name == "process_cpu_seconds_total"
		if m.Help == "" || m.Value < 0 && m.Name != "process_virtual_memory_max_bytes" || m.Value == 0 && !may0 {
			t.Errorf("%+v", m)
		}
	}
}
