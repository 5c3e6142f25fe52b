package main

import (
	"os"
	"runtime"
	"runtime/debug"
	"testing"
	"time"
)

// TestCalmCollector: the first collection is late, and the ones behind it are as ever.
func TestCalmCollector(t *testing.T) {
	usual := debug.SetGCPercent(100)
	defer debug.SetGCPercent(usual)
	percent := func() int {
		now := debug.SetGCPercent(100)
		debug.SetGCPercent(now)
		return now
	}
	t.Setenv("GOGC", "100")
	if calmCollector(); percent() != 100 {
		t.Errorf("GOGC=100 became %d", percent())
	}
	if err := os.Unsetenv("GOGC"); err != nil {
		t.Fatal(err)
	}
	if calmCollector(); percent() != firstCollection {
		t.Fatalf("%d before the first collection", percent())
	}
	for began := time.Now(); percent() != 100; runtime.Gosched() {
		if runtime.GC(); time.Since(began) > 10*time.Second {
			t.Fatalf("%d behind it", percent())
		}
	}
}
