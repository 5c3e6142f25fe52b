package load

import (
	"sync"
	"testing"

	"sandwich/runtime/engine"
	"sandwich/tuner/replay"
)

// TestForwardsWithStats checks that Begin and End do not deadlock with an engine that calls Observe
// while it holds the lock that its statistics need.
func TestForwardsWithStats(t *testing.T) {
	var lock sync.Mutex // the engine's
	noted, asking := make(chan bool), make(chan bool)
	e := &Engine{stats: func() engine.Stats {
		asking <- true
		lock.Lock()
		defer lock.Unlock()
		return engine.Stats{}
	}}
	for _, run := range []func(){e.Begin, func() { e.End(&Run{Report: &replay.Report{}}) }} {
		lock.Lock()
		go func() {
			<-asking
			e.Observe(engine.Forward{})
			lock.Unlock()
			noted <- true
		}()
		run()
		<-noted
	}
	if len(e.forwards) != 1 {
		t.Errorf("%d forwards since the run began, want 1", len(e.forwards))
	}
}
