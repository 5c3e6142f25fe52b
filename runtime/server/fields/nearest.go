package fields

import (
	"iter"
	"maps"
	"strings"
	"unicode/utf8"
)

// nearest returns the field that name is probably a misspelling of, or "". Fields match if they
// differ only in case or by fewer than three edits, and by less than half of the shorter name.
// Known fields win over unsupported ones at the same distance.
func nearest(name string, known map[string]bool) string {
	if len(name) > 64 {
		return ""
	}
	meant, least := closest(name, maps.Keys(known))
	if other, d := closest(name, maps.Keys(unsupported)); d < least {
		return other
	}
	return meant
}

// closest returns the field with the fewest edits from name and their number; "" if none is close.
func closest(name string, fields iter.Seq[string]) (meant string, least int) {
	least = 3
	for field := range fields {
		d := 0
		if !strings.EqualFold(name, field) {
			d = edits(name, field)
			if 2*d >= min(utf8.RuneCountInString(name), len(field)) {
				continue
			}
		}
		if d < least || d == least && field < meant {
			meant, least = field, d
		}
	}
	return meant, least
}

// edits returns the Damerau-Levenshtein distance with non-overlapping edits: insertions, deletions,
// substitutions, and swaps of adjacent characters.
func edits(a, b string) int {
	s, t := []rune(a), []rune(b)
	before, row, next := make([]int, len(t)+1), make([]int, len(t)+1), make([]int, len(t)+1)
	for j := range row {
		row[j] = j
	}
	for i := range s {
		next[0] = i + 1
		for j := range t {
			changed := row[j]
			if s[i] != t[j] {
				changed++
			}
			next[j+1] = min(changed, row[j+1]+1, next[j]+1)
			if i > 0 && j > 0 && s[i] == t[j-1] && s[i-1] == t[j] {
				next[j+1] = min(next[j+1], before[j-1]+1)
			}
		}
		before, row, next = row, next, before
	}
	return row[len(t)]
}
