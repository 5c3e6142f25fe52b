package engine

import (
	"testing"

	"sandwich/runtime/api"
	"sandwich/runtime/pool"
)

// TestHeartbeat checks that the count of Progress grows with each forward and not without one, and
// that an engine whose loop waits for requests is idle.
func TestHeartbeat(t *testing.T) {
	e := byHand(t, tinyOptions(t))
	e.runner.Lead(func(l *pool.Leader) {
		e.enter(t, api.Request{Prompt: tinyPrompt(1, 20), MaxTokens: 3, IgnoreEOS: true})
		for range 3 {
			before, _ := e.Progress()
			if again, idle := e.Progress(); again != before || idle {
				t.Errorf("without a forward: %d became %d, idle %v", before, again, idle)
			}
			if e.forward(l) == nil {
				t.Fatal("no forward")
			}
			if after, _ := e.Progress(); after <= before+1 {
				t.Errorf("a forward: %d became %d", before, after)
			}
		}
	})
	running := open(t, tinyOptions(t))
	generate(t, running, api.Request{Prompt: tinyPrompt(1, 20), MaxTokens: 3, IgnoreEOS: true})
	checkIdleSoon(t, running)
	for idle := false; !idle; {
		_, idle = running.Progress()
	}
}
