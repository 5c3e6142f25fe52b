package server

import (
	"iter"
	"maps"
	"strings"
	"unicode/utf8"
)

// nearest is the field that name is probably a slip of: equal but for case, or by
// few edits. Edits count for less than half of the shorter name, for two edits
// from a short one are another word. Of fields as near, one that is known.
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

// closest is the field that fewest edits part from name, and how many do; "" where none is near.
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

// edits is the distance of Damerau and Levenshtein, where no part is edited twice:
// characters put in, left out, changed, or swapped with their neighbour.
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
