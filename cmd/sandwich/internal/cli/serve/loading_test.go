package serve

import (
	"context"
	"errors"
	"testing"
	"time"

	"sandwich/cmd/sandwich/internal/cli/modelflags"
	"sandwich/runtime/engine"
	"sandwich/runtime/mem"
	"sandwich/runtime/sched"
	"sandwich/runtime/session"
)

// TestLoadingEndsWithItsContext cancels the loading of a server while it packs the weights, and
// checks that loading stops and frees its memory.
func TestLoadingEndsWithItsContext(t *testing.T) {
	t.Setenv("XDG_DATA_HOME", t.TempDir()) // no stored plans
	before := mem.Total()
	ctx, end := context.WithCancel(t.Context())
	furthest := 0.0
	f := serveFlags{session: modelflags.Flags{Compute: "auto"},
		sizes: modelflags.Service{Sizes: session.Sizes{Parallel: 1,
			Service: engine.Service{Policy: sched.DefaultPolicy, Quantum: 1, Bound: time.Second, MixedCap: 1,
				Aging: time.Minute}}}}
	f.session.Loading = func(stage string, share float64) {
		if stage == "packing weights" && share > 0 {
			furthest = max(furthest, share)
			end()
		}
	}
	f.session.Threads = 1 // the callback then comes from one thread
	l, err := f.load(ctx, f.open)
	if err == nil {
		l.close()
	}
	if !errors.Is(err, errUnloaded) {
		t.Errorf("loading ended with %v", err)
	}
	if furthest == 0 || furthest > 0.5 {
		t.Errorf("packing ended at %.0f %%", 100*furthest)
	}
	if held := mem.Total() - before; held != 0 {
		t.Errorf("%d bytes are still allocated", held)
	}
}
