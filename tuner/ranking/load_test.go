package ranking

import (
	"strings"
	"testing"

	"sandwich/tuner/replay"
)

// TestLongTracesAreCut checks that a ranking replays the beginning of a long file and reports how
// many requests it left out.
func TestLongTracesAreCut(t *testing.T) {
	for _, c := range []struct{ prompt, output, requests, kept int }{
		{1, 20, maxRequests, maxRequests},
		{1, 20, maxRequests + 5, maxRequests},
		{1, maxLoad / 10, 15, 10},
		{1, 2 * maxLoad, 3, 1},  // at least one request is kept
		{maxLoad, 1, 2000, 511}, // long prompts take as much time as many tokens
	} {
		l := Load{Name: "f", Trace: make(replay.Trace, c.requests)}
		for i := range l.Trace {
			l.Trace[i] = replay.Request{Prompt: c.prompt, Output: c.output}
		}
		if err := l.complete(false); err != nil {
			t.Fatal(err)
		}
		if len(l.Trace) != c.kept || l.left != c.requests-c.kept {
			t.Errorf("%+v: %d kept, %d left out", c, len(l.Trace), l.left)
		}
		if said := strings.Contains(l.String(), "without the"); said != (c.kept < c.requests) {
			t.Errorf("%+v: %s", c, &l)
		}
	}
}
