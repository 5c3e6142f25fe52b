package measure

import (
	"strings"
	"testing"
	"time"
)

func TestParseNeighbour(t *testing.T) {
	for text, want := range map[string]Neighbour{
		"1:50%":     {1, 0.5, neighbourPeriod},
		"0:100":     {0, 1, neighbourPeriod},
		"3:25%/5ms": {3, 0.25, 5 * time.Millisecond},
	} {
		got, err := ParseNeighbour(text)
		if err != nil || got != want {
			t.Errorf("%s: %v, %v", text, got, err)
		}
		if again, err := ParseNeighbour(got.String()); err != nil || again != got {
			t.Errorf("%s is read as %v, %v", got, again, err)
		}
	}
	for _, text := range []string{"", "1", "1:", "-1:50%", "x:50%", "1:0%", "1:101%", "1:NaN%", "1:50%/", "1:50%/1ns",
		"1:50%/1h"} {
		if n, err := ParseNeighbour(text); err == nil || !strings.Contains(err.Error(), "1:50%") {
			t.Errorf("%q: %v, %v", text, n, err)
		}
	}
}

func TestFairPart(t *testing.T) {
	for _, c := range []struct {
		n    Neighbour
		pus  []int
		want float64
	}{
		{Neighbour{PU: 1, Part: 0.5}, []int{0, 1}, 0.75},
		{Neighbour{PU: 1, Part: 1}, []int{0, 1}, 0.75},
		{Neighbour{PU: 1, Part: 0.2}, []int{1}, 0.8},
		{Neighbour{PU: 5, Part: 0.5}, []int{0, 1}, 1},
	} {
		if got := c.n.fairPart(c.pus); got != c.want {
			t.Errorf("%v beside %v: %v, want %v", c.pus, c.n, got, c.want)
		}
	}
}
