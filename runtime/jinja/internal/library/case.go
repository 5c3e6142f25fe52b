package library

import (
	"strings"
	"unicode"

	"sandwich/runtime/jinja/internal/object"
)

// onRunes returns a filter that maps characters. It calls start for each text to get the mapping. A
// change of case makes a text at most half as long again.
func onRunes(start func() func(rune) rune) filterFunc {
	return func(r *Run, in any, _ *Arguments) any {
		t := r.TextOf(in)
		r.Text(len(t.Plain) + len(t.Plain)/2)
		r.Take(len(t.Spans) * object.SpanBytes)
		return object.MapRunes(t, start()).Value()
	}
}

// titleWords maps characters for the filter title, whose words start after spaces, hyphens and
// brackets. For the method title, words start after any non-letter.
func titleWords() func(rune) rune {
	return capitals(func(c rune) bool { return object.IsSpace(c) || strings.ContainsRune("-({[<", c) })
}

// capitals returns a mapping that raises the first character and those after separators, and lowers
// all others.
func capitals(separates func(rune) bool) func(rune) rune {
	starts := true
	return func(c rune) rune {
		first := starts
		if starts = separates(c); first {
			return unicode.ToTitle(c)
		}
		return unicode.ToLower(c)
	}
}

func upper() func(rune) rune { return unicode.ToUpper }

func lower() func(rune) rune { return unicode.ToLower }

// capitalize returns a mapping that raises the first character and lowers all others.
func capitalize() func(rune) rune {
	return capitals(func(rune) bool { return false })
}
