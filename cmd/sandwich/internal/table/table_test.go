package table

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// Whatever is folded and cut, no line is too long and no letter is lost.
func TestFitLosesNothing(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		var tab Table
		for c := range 1 + random.IntN(14) {
			tab.Header = append(tab.Header, strings.Repeat("hd ", random.IntN(6)))
			if random.IntN(2) == 0 {
				tab.Numbers = append(tab.Numbers, c)
			}
		}
		for r := range random.IntN(5) {
			row := make([]string, random.IntN(len(tab.Header)+1))
			for c := range row {
				row[c] = fmt.Sprintf("%c%d", 'a'+c, r)
				if !slices.Contains(tab.Numbers, c) {
					row[c] += strings.Repeat([]string{"x", "y,", "é/", "-", " z"}[random.IntN(5)], random.IntN(40))
				}
			}
			tab.Rows = append(tab.Rows, row)
		}
		limit := 40 + random.IntN(80)
		letters := map[string]bool{}
		for _, part := range tab.Fit(limit) {
			if part.width() > limit {
				t.Fatalf("%d columns, limit %d: %q %q", part.width(), limit, part.Header, part.Rows)
			}
			for _, row := range part.Rows {
				for _, cell := range row {
					letters[squeeze(cell)] = true
				}
			}
		}
		for _, row := range tab.Rows {
			for _, cell := range row {
				if !letters[squeeze(cell)] {
					t.Fatalf("limit %d: %q is gone", limit, cell)
				}
			}
		}
	}
}

// squeeze leaves out what folding may change.
func squeeze(s string) string { return strings.Join(strings.Fields(s), "") }

func TestFold(t *testing.T) {
	for _, c := range []struct {
		text  string
		limit int
		want  string
	}{
		{"short", 10, "short"},
		{"two words", 5, "two\nwords"},
		{"0-3,8-11,16-19", 8, "0-3,\n8-11,\n16-19"},
		{"avx512/int8/q8_0", 12, "avx512/int8/\nq8_0"},
		{"tales-6m-q8_0", 8, "tales-\n6m-q8_0"},
		{"abcdefgh", 3, "abc\ndef\ngh"},
		{"up to 10 % more", 8, "up to\n10 %\nmore"},
		{"世界世界", 4, "世界\n世界"},
		{"世", 1, "世"},
		{"  M 1-4", 20, "  M 1-4"},
	} {
		if got := Fold(c.text, c.limit); got != c.want {
			t.Errorf("Fold(%q, %d) = %q, want %q", c.text, c.limit, got, c.want)
		}
	}
}
