package measure

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"sandwich/topotree"
)

// booked writes the files of a kernel: uptime, busy seconds of PUs 0 and 1 with stolen seconds, and
// the seconds of a thread on a PU.
func booked(t *testing.T, proc string, up, busy0, busy1, stolen1, own float64, on int) {
	t.Helper()
	for name, text := range map[string]string{
		"uptime": fmt.Sprintf("%.2f 1.0\n", up),
		"stat": fmt.Sprintf("cpu  1 2 3 4 5 6 7 8 9 0\ncpu0 %.0f 0 0 99999 7 0 0 0 0 0\n"+
			"cpu1 0 %.0f 0 99 7 0 0 %.0f 0 0\nintr 5\n", 100*busy0, 100*(busy1-stolen1), 100*stolen1),
		"self/task/17/stat": fmt.Sprintf("17 (a) b (c) S %s %.0f 100 %s %d 0 0\n", strings.Repeat("0 ", 10),
			100*own, strings.Repeat("0 ", 23), on),
	} {
		path := filepath.Join(proc, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func TestOthersByTheBooks(t *testing.T) {
	for _, c := range []struct {
		what               string
		busy0, busy1       float64
		stolen1, own, want float64
		on                 int
		pus                []int
	}{
		{"no other process", 10, 0, 0, 10, 0, 0, []int{0, 1}},
		{"a neighbor on PU 1", 10, 4, 0, 10, 0.4, 0, []int{0, 1}},
		{"a neighbor where the plan is not", 10, 4, 0, 10, 0, 0, []int{0}},
		{"another machine", 10, 3, 3, 10, 0.3, 0, []int{0, 1}},
		{"a thread that wandered", 5, 5, 0, 10, 0, 0, []int{0, 1}},
		{"a sandbox that books nothing", 0, 0, 0, 10, 0, 0, []int{0, 1}},
	} {
		proc := t.TempDir()
		booked(t, proc, 100, 50, 50, 1, 7, 0)
		o := watchOthers(proc, topotree.NewCPUSet(c.pus...))
		booked(t, proc, 110, 50+c.busy0, 50+c.busy1, 1+c.stolen1, 7+c.own, c.on)
		if got := o.Share(); got < c.want-1e-6 || got > c.want+1e-6 {
			t.Errorf("%s: %v of a PU, want %v", c.what, got, c.want)
		}
	}
	if got := watchOthers(t.TempDir(), topotree.NewCPUSet(0)).Share(); got != 0 {
		t.Errorf("without books: %v", got)
	}
}

// TestLedgerOfThisKernel checks the columns of this kernel: a busy thread counts for this process
// and for a PU.
func TestLedgerOfThisKernel(t *testing.T) {
	before := readLedger("/proc")
	if runtime.GOOS != "linux" || len(before.busy) == 0 || slices.Max(slices.Collect(maps.Values(before.busy))) == 0 {
		t.Skip("the times of processes are unknown: needs Linux with /proc mounted, outside a sandbox that hides them")
	}
	own, busy, wall := 0.0, 0.0, 0.0
	// on a PU shared with others this thread gets its time later
	for began := time.Now(); time.Since(began) < time.Minute && (own < 0.2 || busy < 0.2); {
		for piece := time.Now(); time.Since(piece) < 50*time.Millisecond; {
		}
		after := readLedger("/proc")
		own, busy, wall = 0, 0, after.uptime-before.uptime
		for id, s := range after.threads {
			own += s.time - before.threads[id].time
		}
		for pu, b := range after.busy {
			busy += b - before.busy[pu]
		}
	}
	if own < 0.2 || busy < 0.2 || wall < 0.15 {
		t.Errorf("%.2f s of its own and %.2f of all PUs in %.2f s of work", own, busy, wall)
	}
}
