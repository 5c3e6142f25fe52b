package rig

import (
	"testing"

	"sandwich/runtime/phase"
)

// TestEvenSamples checks that short forwards are repeated until a sample takes a twelfth of the
// longest one.
func TestEvenSamples(t *testing.T) {
	tests := []Test{{phase.Prefill, 512, 0, 1, 1.8}, {phase.Prefill, 64, 0, 1, 0.25}, {phase.Decode, 1, 0, 1, 0.03},
		{phase.Decode, 4, 0, 1, 0.0001}}
	Even(tests)
	for i, want := range []int{1, 1, 5, 200} {
		if tests[i].Times != want {
			t.Errorf("%s is run %d times, want %d", tests[i].Name(), tests[i].Times, want)
		}
	}
	tests = []Test{{phase.Prefill, 512, 0, 1, 0.02}, {phase.Decode, 1, 0, 1, 0.005}}
	Even(tests)
	if tests[1].Times != 4 {
		t.Errorf("%d forwards of 5 ms are no sample of 20 ms", tests[1].Times)
	}
}

// TestPackedPrompt checks that a forward of a race has several texts with one output each, and as
// many as fit.
func TestPackedPrompt(t *testing.T) {
	for _, c := range []struct{ rows, batch, texts int }{
		{512, 16, 4}, {512, 3, 3}, {64, 16, 1}, {500, 16, 4}, {512, 1, 1},
	} {
		spans := textSpans(c.rows, c.batch)
		at := 0
		for _, s := range spans {
			if s.Row != at {
				t.Errorf("%+v: a text begins at row %d, not at %d", c, s.Row, at)
			}
			at += s.Rows
		}
		if len(spans) != c.texts || at != c.rows {
			t.Errorf("%+v: %+v", c, spans)
		}
	}
}
