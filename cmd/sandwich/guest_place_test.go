//go:build numa

package main

import (
	"encoding/json"
	"maps"
	"strconv"
	"strings"
	"testing"

	"sandwich/cmd/sandwich/internal/testguest"
	"sandwich/topotree"
)

// expectPinned checks that each of the first PUs of the machine has one thread that may run there
// and nowhere else, and that was last seen there; and that no further PU has one.
func expectPinned(t *testing.T, p testguest.Process, pus int) {
	t.Helper()
	pinned := map[int]int{}
	for _, task := range p.Tasks {
		set, err := topotree.ParseCPUSet(task.Allowed)
		if err != nil {
			t.Fatal(err)
		}
		if set.Count() != 1 {
			continue
		}
		pu := set.Slice()[0]
		pinned[pu]++
		if task.CPU != pu {
			t.Errorf("thread %d may run on PU %d and last ran on %d", task.ID, pu, task.CPU)
		}
	}
	want := map[int]int{}
	for pu := range pus {
		want[pu] = 1
	}
	if !maps.Equal(pinned, want) {
		t.Errorf("threads of one PU only, by PU: %v, want one on each of 0 to %d", pinned, pus-1)
	}
}

// boundPages sums the memory of a process that is bound to one node: KiB by the node it is bound to
// and the node it is on.
func boundPages(t *testing.T, p testguest.Process) map[int]map[int]int {
	t.Helper()
	all, err := testguest.ParseNumaMaps(p.NumaMaps)
	if err != nil {
		t.Fatal(err)
	}
	kib := map[int]map[int]int{}
	for _, m := range all {
		text, bound := strings.CutPrefix(m.Policy, "prefer:")
		home, err := strconv.Atoi(text)
		if !bound || err != nil {
			continue
		}
		if kib[home] == nil {
			kib[home] = map[int]int{}
		}
		for node, pages := range m.Pages {
			kib[home][node] += pages * m.KiB
		}
	}
	return kib
}

// jsonText returns a text as encoded in JSON, without the quotes.
func jsonText(t *testing.T, s string) string {
	t.Helper()
	b, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Trim(string(b), "\"")
}
