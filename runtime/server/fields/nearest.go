package fields

import (
	"iter"
	"maps"
	"strings"
	"unicode/utf8"

	"sandwich/internal/spelling"
)

// nearest returns the field that name is probably a misspelling of, or "". Fields match if they
// differ only in case or by fewer than three edits, and by less than half of the shorter name.
// Known fields win over unsupported ones at the same distance.
func nearest(name string, known map[string]bool) string {
	if len(name) > 64 {
		return ""
	}
	meant, minimum := closest(name, maps.Keys(known))
	if other, d := closest(name, maps.Keys(unsupported)); d < minimum {
		return other
	}
	return meant
}

// closest returns the field with the fewest edits from name and their number; "" if none is close.
func closest(name string, fields iter.Seq[string]) (meant string, smallest int) {
	smallest = 3
	for field := range fields {
		d := 0
		if !strings.EqualFold(name, field) {
			d = spelling.Edits(name, field)
			if 2*d >= min(utf8.RuneCountInString(name), len(field)) {
				continue
			}
		}
		if d < smallest || d == smallest && field < meant {
			meant, smallest = field, d
		}
	}
	return meant, smallest
}
