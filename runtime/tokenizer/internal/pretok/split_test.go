package pretok

import (
	"strings"
	"testing"
)

// TestSplittersWhole checks that the words of any text add up to the text.
func TestSplittersWhole(t *testing.T) {
	for name, pre := range ByName {
		for _, text := range scanSeeds {
			for _, other := range scanSeeds {
				checkWhole(t, name, pre, text+other)
			}
		}
	}
}

func checkWhole(t *testing.T, name string, pre PreTokenizer, text string) {
	t.Helper()
	joined := ""
	pre.Split.Each(text, func(word string) bool {
		if word == "" {
			t.Fatalf("%s cuts %q into empty words", name, text)
		}
		joined += word
		return true
	})
	if joined != text {
		t.Fatalf("%s makes %q of %q", name, joined, text)
	}
}

func FuzzSplitters(f *testing.F) {
	for _, text := range scanSeeds {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for name, pre := range ByName {
			checkWhole(t, name, pre, text)
		}
	})
}

// TestSplittersLinear checks that splitting takes linear time: with quadratic time the test would
// not finish.
func TestSplittersLinear(t *testing.T) {
	const n = 1 << 18
	for _, pre := range ByName {
		for _, fill := range []string{" ", "a", "1", "\n", "'", "你", "\u0301", " a", "<sentinel:", "IMGIMG"} {
			text, cut := strings.Repeat(fill, n/len(fill))+"x", 0
			pre.Split.Each(text, func(piece string) bool { cut += len(piece); return true })
			if cut != len(text) {
				t.Errorf("pieces of runs of %q have %d bytes, the text %d", fill, cut, len(text))
			}
		}
	}
}
