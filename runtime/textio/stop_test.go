package textio

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// TestStopper cuts random texts into random pieces and compares with a search in the whole text;
// what was sent on the way is a beginning of it at any time.
func TestStopper(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 4))
	random := func(n int) string {
		var b strings.Builder
		for range n {
			b.WriteByte("ab\n"[rng.IntN(3)])
		}
		return b.String()
	}
	found := 0
	for range 20000 {
		text := random(rng.IntN(30))
		var stops []string
		for range rng.IntN(4) {
			stops = append(stops, random(rng.IntN(6)))
		}
		want := cutAtStop(text, stops)
		s := newStopper(stops)
		got, stopped := "", false
		for rest := text; rest != "" && !stopped; {
			n := 1 + rng.IntN(len(rest))
			var send string
			send, stopped = s.push(rest[:n])
			got += send
			rest = rest[n:]
			if !strings.HasPrefix(want, got) {
				t.Fatalf("%q with stops %q: sent %q, which is no beginning of %q", text, stops, got, want)
			}
		}
		if !stopped {
			got += s.flush()
		} else {
			found++
			if !strings.HasPrefix(text[len(got):], s.found) || s.found == "" {
				t.Fatalf("%q with stops %q ends at %q", text, stops, s.found)
			}
		}
		if got != want {
			t.Fatalf("%q with stops %q: %q, want %q", text, stops, got, want)
		}
	}
	if found < 1000 {
		t.Errorf("only %d texts had a stop string", found)
	}
}

// cutAtStop reads a text byte by byte until some stop string is complete, and returns the text
// before it.
func cutAtStop(text string, stops []string) string {
	for end := range len(text) + 1 {
		best := -1
		for _, stop := range stops {
			if stop != "" && strings.HasSuffix(text[:end], stop) {
				best = max(best, len(stop))
			}
		}
		if best > 0 {
			return text[:end-best]
		}
	}
	return text
}
