package tune

import (
	"strings"
	"testing"
	"time"
)

// TestProbeWords checks that more than two PUs are measured fully if the budget allows it, and that
// the notice gives the time.
func TestProbeWords(t *testing.T) {
	for _, c := range []struct {
		pus    int
		budget time.Duration
		full   bool
		words  string
	}{
		{2, time.Hour, false, ""},
		{4, 10 * time.Minute, true, "measuring the structure of 4 PUs first, about 16s"},
		{4, 40 * time.Second, false, "takes about 16s, too long for --budget 40s"},
		{192, 10 * time.Minute, true, "the structure of 192 PUs first, about 1m50s"},
	} {
		full, words := probeWords(c.pus, c.budget)
		if full != c.full || !strings.Contains(words, c.words) || (words == "") != (c.words == "") {
			t.Errorf("%d PUs in %s: %v, %q", c.pus, c.budget, full, words)
		}
	}
}
