// Package table formats rows under a header as text, folded or divided to fit the width of the
// terminal.
package table

import (
	"io"
	"slices"
	"strings"

	"github.com/olekukonko/tablewriter"
	"github.com/olekukonko/tablewriter/pkg/twwidth"
	"github.com/olekukonko/tablewriter/renderer"
	"github.com/olekukonko/tablewriter/tw"
)

// LeastFold is the minimum width of a folded column of text.
const LeastFold = 14

// padding of a column.
const padding = 2

// Table holds rows under a header.
type Table struct {
	Header  []string
	Rows    [][]string
	Numbers []int // columns that are aligned to the right and never folded
}

// Fit makes the table fit lines of limit columns; 0 means no limit. It folds headers between
// words, then columns of text, and finally divides the table into several, which repeat the
// columns that identify a row.
func (t Table) Fit(limit int) []Table {
	if limit == 0 || t.width() <= limit {
		return []Table{t}
	}
	t.Header, t.Rows = slices.Clone(t.Header), cloneRows(t.Rows)
	for i := range t.Header {
		t.Header[i] = Fold(t.Header[i], max(t.cellWidth(i), longestWord(t.Header[i])))
	}
	widths := make([]int, len(t.Header))
	for i := range widths {
		widths[i] = t.columnWidth(i)
	}
	for over := t.width() - limit; over > 0; over-- {
		widest := -1
		for i, n := range widths {
			foldable := !slices.Contains(t.Numbers, i) && n > LeastFold
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
		t.Header[i] = Fold(t.Header[i], n)
		for _, row := range t.Rows {
			if i < len(row) {
				row[i] = Fold(row[i], n)
			}
		}
	}
	if t.width() <= limit {
		return []Table{t}
	}
	return t.cut(limit)
}

// cut distributes the columns over several tables. Each table but the first begins with the key
// columns.
func (t Table) cut(limit int) (out []Table) {
	keys := t.keys(limit)
	var columns []int
	room, own := limit, 0
	for next := range t.Header {
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

// keys returns the leading columns that distinguish rows. If they would take too much width, it
// returns the first column.
func (t Table) keys(limit int) (keys []int) {
	for c := range t.Header {
		values := map[string]bool{}
		for _, row := range t.columns([]int{c}).Rows {
			values[row[0]] = true
		}
		if len(values) > 1 {
			keys = append(keys, c)
		}
		rows := map[string]bool{}
		for _, row := range t.columns(keys).Rows {
			rows[strings.Join(row, "\x00")] = true
		}
		if len(rows) == len(t.Rows) {
			break
		}
	}
	if len(keys) == 0 || t.columns(keys).width() > limit/2 {
		return []int{0}
	}
	return keys
}

func (t Table) columns(columns []int) Table {
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
	part := Table{Header: pick(t.Header)}
	for _, row := range t.Rows {
		part.Rows = append(part.Rows, pick(row))
	}
	for i, c := range columns {
		if slices.Contains(t.Numbers, c) {
			part.Numbers = append(part.Numbers, i)
		}
	}
	return part
}

func (t Table) width() (sum int) {
	for i := range t.Header {
		sum += t.columnWidth(i) + padding
	}
	return sum
}

func (t Table) columnWidth(i int) int { return max(displayWidth(t.Header[i]), t.cellWidth(i)) }

func (t Table) cellWidth(i int) (largest int) {
	for _, row := range t.Rows {
		if i < len(row) {
			largest = max(largest, displayWidth(row[i]))
		}
	}
	return largest
}

// displayWidth returns the width of the longest line in columns.
func displayWidth(s string) (largest int) {
	for line := range strings.Lines(s) {
		largest = max(largest, twwidth.Width(strings.TrimRight(line, "\n")))
	}
	return largest
}

// longestWord returns the minimum width of a header, that of its longest word.
func longestWord(s string) (largest int) {
	for _, word := range strings.Fields(s) {
		largest = max(largest, twwidth.Width(word))
	}
	return largest
}

func cloneRows(rows [][]string) (out [][]string) {
	for _, r := range rows {
		out = append(out, slices.Clone(r))
	}
	return out
}

// Render writes the table.
func (t Table) Render(w io.Writer) error {
	align := make([]tw.Align, len(t.Header))
	for i := range align {
		align[i] = tw.AlignLeft
		if slices.Contains(t.Numbers, i) {
			align[i] = tw.AlignRight
		}
	}
	out := tablewriter.NewTable(w,
		tablewriter.WithRenderer(renderer.NewBlueprint(tw.Rendition{
			Borders: tw.BorderNone,
			Settings: tw.Settings{
				Separators: tw.Separators{BetweenColumns: tw.Off, BetweenRows: tw.Off},
				Lines:      tw.Lines{ShowHeaderLine: tw.Off},
			},
		})),
		tablewriter.WithHeaderAutoFormat(tw.Off),
		tablewriter.WithHeaderAlignment(tw.AlignLeft),
		tablewriter.WithAlignment(align),
		tablewriter.WithRowAutoWrap(tw.WrapNone),
		tablewriter.WithTrimSpace(tw.Off),
	)
	out.Header(t.Header)
	for _, r := range t.Rows {
		if err := out.Append(r); err != nil {
			return err
		}
	}
	return out.Render()
}
