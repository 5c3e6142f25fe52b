package show

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/mattn/go-isatty"
	"golang.org/x/term"

	"sandwich/cmd/sandwich/internal/table"
)

// JSON writes a value as indented JSON without escaping HTML characters.
func JSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// Table writes rows under a header, with text to the left and the columns in numbers to the right.
// On a terminal no line is wider than the terminal.
func Table(w io.Writer, header []string, rows [][]string, numbers ...int) error {
	clean := make([][]string, len(rows)) // here, so that columns are as wide as what is shown
	for i, r := range rows {
		for _, cell := range r {
			clean[i] = append(clean[i], Printable(cell))
		}
	}
	for i, t := range (table.Table{Header: header, Rows: clean, Numbers: numbers}).Fit(Width()) {
		if i > 0 {
			fmt.Fprintln(w)
		}
		if err := t.Render(w); err != nil {
			return err
		}
	}
	return nil
}

// minWidth is the minimum width that tables are fitted to.
const minWidth = 40

// Width returns the maximum number of columns of a line: $COLUMNS, else the width of the terminal.
// It returns 0, no limit, if stdout is not a terminal, so that tools such as grep see one line per
// row.
func Width() int {
	if n, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && n > 0 {
		return max(n, minWidth)
	}
	if !isatty.IsTerminal(os.Stdout.Fd()) {
		return 0
	}
	n, _, err := term.GetSize(int(os.Stdout.Fd()))
	if err != nil || n <= 0 {
		return 0
	}
	return max(n, minWidth)
}

// Fields writes names and values in two columns.
func Fields(w io.Writer, rows [][]string) {
	for _, r := range rows {
		fmt.Fprintf(w, "  %-12s %s\n", r[0], Hanging(r[1], 15))
	}
}

// Hanging folds text that begins at a column and indents the following lines to that column. It
// does not split hashes.
func Hanging(text string, column int) string {
	limit := Width()
	if limit == 0 || !strings.Contains(text, " ") {
		return text
	}
	text = table.Fold(text, max(limit-column, table.LeastFold))
	return strings.ReplaceAll(text, "\n", "\n"+strings.Repeat(" ", column))
}

// Sentence writes a paragraph, folded to the width of the terminal.
func Sentence(w io.Writer, text string) error {
	if limit := Width(); limit > 0 {
		text = table.Fold(text, limit)
	}
	_, err := fmt.Fprintln(w, text)
	return err
}

// CSVCell quotes a value if CSV requires it.
func CSVCell(s string) string {
	if strings.ContainsAny(s, ",\"\n") {
		return `"` + strings.ReplaceAll(s, `"`, `""`) + `"`
	}
	return s
}
