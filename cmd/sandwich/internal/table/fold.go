package table

import (
	"cmp"
	"strings"
	"unicode/utf8"

	"github.com/olekukonko/tablewriter/pkg/twwidth"
)

// Fold breaks lines so that none is wider than limit: after a space, comma, slash or colon, else
// after a hyphen, else anywhere.
func Fold(s string, limit int) string {
	var out []string
	for _, line := range strings.Split(s, "\n") {
		for twwidth.Width(line) > limit {
			head, rest := breakLine(line, limit)
			if rest == "" { // one letter that is wider
				break
			}
			out, line = append(out, strings.TrimRight(head, " ")), rest
		}
		out = append(out, line)
	}
	return strings.Join(out, "\n")
}

// breakLine splits line after at most limit columns at the best position, and returns both parts.
func breakLine(line string, limit int) (head, rest string) {
	good, hyphen, hard := 0, 0, 0
	for i, r := range line {
		next := i + utf8.RuneLen(r)
		if twwidth.Width(strings.TrimRight(line[:next], " ")) > limit && hard > 0 {
			break
		}
		hard = next
		switch {
		case r == ' ' && strings.HasPrefix(line[next:], "%"): // which its number keeps
		case strings.ContainsRune(" ,/:", r) && strings.TrimSpace(line[:next]) != "":
			good = next
		case r == '-':
			hyphen = next
		}
	}
	at := cmp.Or(good, hyphen, hard)
	return line[:at], line[at:]
}
