package root

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"
	"time"
)

// gcPercent returns the heap growth that is set. debug.SetGCPercent would undo a change that a
// cleanup makes at the same time.
func gcPercent() int {
	sample := []metrics.Sample{{Name: "/gc/gogc:percent"}}
	metrics.Read(sample)
	return int(sample[0].Value.Uint64())
}

// TestFirstGC checks that repeated delays end at the first collection with the original percentage.
func TestFirstGC(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(100))
	t.Setenv("GOGC", "100")
	var unused gcDelay
	if unused.set(firstGC); gcPercent() != 100 {
		t.Errorf("GOGC=100 became %d", gcPercent())
	}
	if err := os.Unsetenv("GOGC"); err != nil {
		t.Fatal(err)
	}
	for _, percents := range [][]int{{firstGC}, {firstGC, firstGCForPlans}} {
		d := new(gcDelay)
		for _, p := range percents {
			if d.set(p); gcPercent() != p {
				t.Fatalf("%d percent before the first collection, want %d", gcPercent(), p)
			}
		}
		for began := time.Now(); gcPercent() != 100; runtime.Gosched() {
			if runtime.GC(); time.Since(began) > 2*time.Minute {
				t.Fatalf("%v: %d percent after the first collection, want 100", percents, gcPercent())
			}
		}
		if d.set(firstGC); gcPercent() != 100 {
			t.Errorf("%d percent set after the first collection, want 100", gcPercent())
		}
	}
}
