package speculate

import "testing"

// TestModes checks the drafters and the numbers of tokens of modes, and the refusal of others.
func TestModes(t *testing.T) {
	for _, c := range []struct {
		mode   string
		drafts bool
		depth  int
		fails  bool
	}{
		{mode: "auto", drafts: true}, {mode: "ngram", drafts: true}, {mode: "off"},
		{mode: "ngram=4", drafts: true, depth: 4}, {mode: "auto=64", drafts: true, depth: 64},
		{mode: "off=1", fails: true}, {mode: "ngram=0", fails: true}, {mode: "ngram=65", fails: true},
		{mode: "ngram=", fails: true}, {mode: "ngram=-1", fails: true}, {mode: "ngram=x", fails: true},
		{mode: "", fails: true}, {mode: "eagle", fails: true}, {mode: "eagle=2", fails: true},
	} {
		d, depth, err := New(c.mode)
		if (d != nil) != c.drafts || depth != c.depth || (err != nil) != c.fails {
			t.Errorf("%q: drafter %v, depth %d, error %v", c.mode, d, depth, err)
		}
	}
}
