package root

import (
	"os"
	"runtime"
	"runtime/debug"
	"sync"
)

// Heap growth before the first garbage collection, in percent of Go's initial heap goal of 4 MB.
// Short verbs exit before they reach it. Verbs on plans read larger files, which stay live.
const (
	firstGC         = 400
	firstGCForPlans = 1000
)

// gcDelay postpones the first garbage collection of the process. The zero value is ready to use,
// also concurrently.
type gcDelay struct {
	mu      sync.Mutex
	started bool
	ended   bool // the first collection has happened
	usual   int  // percentage to restore
}

// set lets the heap grow by percent before the first collection. After that collection, and where
// the environment sets GOGC, it has no effect; the usual percentage applies.
func (d *gcDelay) set(percent int) {
	if os.Getenv("GOGC") != "" {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ended {
		return
	}
	previous := debug.SetGCPercent(percent)
	if d.started {
		return
	}
	d.started, d.usual = true, previous
	runtime.AddCleanup(new([16]byte), (*gcDelay).end, d) // runs after the first collection
}

func (d *gcDelay) end() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ended = true
	debug.SetGCPercent(d.usual)
}

var processGC gcDelay

// DelayFirstGC postpones the first garbage collection of a short-lived process.
func DelayFirstGC() { processGC.set(firstGC) }
