package main

import (
	"cmp"
	"os"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/mattn/go-isatty"
	"github.com/olekukonko/tablewriter/pkg/twwidth"
	"golang.org/x/term"
)

// outputWidth is how many columns a line of text for people may have: $COLUMNS, else those of the
// terminal. It is 0, which bounds nothing, where stdout is no terminal: a row is a line then, for
// grep and awk.
func outputWidth() int {
	if n, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && n > 0 {
		return max(n, leastWidth)
	}
	if !isatty.IsTerminal(os.Stdout.Fd()) {
		return 0
	}
	n, _, err := term.GetSize(int(os.Stdout.Fd()))
	if err != nil || n <= 0 {
		return 0
	}
	return max(n, leastWidth)
}

const (
	leastWidth = 40 // narrower than that nothing is readable
	leastFold  = 14 // what a column of text keeps
	padding    = 2  // of a column
)

// table is what printTable prints; the columns of numbers are those that are never folded.
type table struct {
	header  []string
	rows    [][]string
	numbers []int
}

// fit folds headers between words, then columns of text, and in the end cuts the table into several
// whose rows tell what they belong to, until no line is longer than limit.
func (t table) fit(limit int) []table {
	if limit == 0 || t.width() <= limit {
		return []table{t}
	}
	t.header, t.rows = slices.Clone(t.header), cloneRows(t.rows)
	for i := range t.header {
		t.header[i] = fold(t.header[i], max(t.cellWidth(i), longestWord(t.header[i])))
	}
	widths := make([]int, len(t.header))
	for i := range widths {
		widths[i] = t.columnWidth(i)
	}
	for over := t.width() - limit; over > 0; over-- {
		widest := -1
		for i, n := range widths {
			foldable := !slices.Contains(t.numbers, i) && n > leastFold
			if foldable && (widest < 0 || n > widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			break
		}
		widths[widest]--
	}
	for i, n := range widths {
		t.header[i] = fold(t.header[i], n)
		for _, row := range t.rows {
			if i < len(row) {
				row[i] = fold(row[i], n)
			}
		}
	}
	if t.width() <= limit {
		return []table{t}
	}
	return t.cut(limit)
}

// cut deals the columns out to several tables, each but the first with the keys before the rest.
func (t table) cut(limit int) (out []table) {
	keys := t.keys(limit)
	var columns []int
	room, own := limit, 0
	for next := range t.header {
		need := t.columnWidth(next) + padding
		if need > room && own > 0 {
			out = append(out, t.columns(columns))
			columns, room, own = slices.Clone(keys), limit-t.columns(keys).width(), 0
		}
		if !slices.Contains(columns, next) {
			columns, room, own = append(columns, next), room-need, own+1
		}
	}
	return append(out, t.columns(columns))
}

// keys are the columns that tell rows apart, of the first ones those that are not the same in every
// row; the first column where that would leave too little room.
func (t table) keys(limit int) (keys []int) {
	for c := range t.header {
		values := map[string]bool{}
		for _, row := range t.columns([]int{c}).rows {
			values[row[0]] = true
		}
		if len(values) > 1 {
			keys = append(keys, c)
		}
		rows := map[string]bool{}
		for _, row := range t.columns(keys).rows {
			rows[strings.Join(row, "\x00")] = true
		}
		if len(rows) == len(t.rows) {
			break
		}
	}
	if len(keys) == 0 || t.columns(keys).width() > limit/2 {
		return []int{0}
	}
	return keys
}

func (t table) columns(columns []int) table {
	pick := func(row []string) (out []string) {
		for _, c := range columns {
			cell := ""
			if c < len(row) {
				cell = row[c]
			}
			out = append(out, cell)
		}
		return out
	}
	part := table{header: pick(t.header)}
	for _, row := range t.rows {
		part.rows = append(part.rows, pick(row))
	}
	for i, c := range columns {
		if slices.Contains(t.numbers, c) {
			part.numbers = append(part.numbers, i)
		}
	}
	return part
}

func (t table) width() (sum int) {
	for i := range t.header {
		sum += t.columnWidth(i) + padding
	}
	return sum
}

func (t table) columnWidth(i int) int { return max(displayWidth(t.header[i]), t.cellWidth(i)) }

func (t table) cellWidth(i int) (most int) {
	for _, row := range t.rows {
		if i < len(row) {
			most = max(most, displayWidth(row[i]))
		}
	}
	return most
}

// displayWidth is the columns of the longest line.
func displayWidth(s string) (most int) {
	for line := range strings.Lines(s) {
		most = max(most, twwidth.Width(strings.TrimRight(line, "\n")))
	}
	return most
}

// longestWord is the width that a header needs at least.
func longestWord(s string) (most int) {
	for _, word := range strings.Fields(s) {
		most = max(most, twwidth.Width(word))
	}
	return most
}

func cloneRows(rows [][]string) (out [][]string) {
	for _, r := range rows {
		out = append(out, slices.Clone(r))
	}
	return out
}

// fold breaks lines behind spaces, commas, slashes and colons so that none is wider than limit,
// else behind a hyphen; what has none of them is broken where it is.
func fold(s string, limit int) string {
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

// breakLine is the longest head of at most limit columns that ends well, and the rest.
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
