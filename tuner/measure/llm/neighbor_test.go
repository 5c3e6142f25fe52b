package llm

import (
	"strings"
	"testing"
	"time"

	"sandwich/topotree"
)

func TestParseNeighbor(t *testing.T) {
	for text, want := range map[string]Neighbor{
		"1:50%":     {1, 0.5, neighborPeriod},
		"0:100":     {0, 1, neighborPeriod},
		"3:25%/5ms": {3, 0.25, 5 * time.Millisecond},
	} {
		got, err := ParseNeighbor(text)
		if err != nil || got != want {
			t.Errorf("%s: %v, %v", text, got, err)
		}
		if again, err := ParseNeighbor(got.String()); err != nil || again != got {
			t.Errorf("%s is read as %v, %v", got, again, err)
		}
	}
	for _, text := range []string{"", "1", "1:", "-1:50%", "x:50%", "1:0%", "1:101%", "1:NaN%", "1:50%/", "1:50%/1ns",
		"1:50%/1h"} {
		if n, err := ParseNeighbor(text); err == nil || !strings.Contains(err.Error(), "1:50%") {
			t.Errorf("%q: %v, %v", text, n, err)
		}
	}
}

func TestFairPart(t *testing.T) {
	for _, c := range []struct {
		n    Neighbor
		pus  []int
		want float64
	}{
		{Neighbor{PU: 1, Part: 0.5}, []int{0, 1}, 0.75},
		{Neighbor{PU: 1, Part: 1}, []int{0, 1}, 0.75},
		{Neighbor{PU: 1, Part: 0.2}, []int{1}, 0.8},
		{Neighbor{PU: 5, Part: 0.5}, []int{0, 1}, 1},
	} {
		if got := c.n.fairPart(topotree.NewCPUSet(c.pus...)); got != c.want {
			t.Errorf("%v with %v: %v, want %v", c.pus, c.n, got, c.want)
		}
	}
}
