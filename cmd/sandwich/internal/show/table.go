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

// JSON writes a value as people and programs read it: indented, characters as they are.
func JSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// Table writes rows under a header, names to the left, numbers to the right, in lines that
// the terminal does not break.
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

// leastWidth is the width below which nothing is readable.
const leastWidth = 40

// Width is how many columns a line of text for people may have: $COLUMNS, else those of the
// terminal. It is 0, which bounds nothing, where stdout is no terminal: a row is a line then, for
// grep and awk.
func Width() int {
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

// Fields writes names with their values.
func Fields(w io.Writer, rows [][]string) {
	for _, r := range rows {
		fmt.Fprintf(w, "  %-12s %s\n", r[0], Hanging(r[1], 15))
	}
}

// Hanging folds a text that begins at a column so that its other lines begin there too. A hash
// stays whole, to be copied.
func Hanging(text string, column int) string {
	limit := Width()
	if limit == 0 || !strings.Contains(text, " ") {
		return text
	}
	text = table.Fold(text, max(limit-column, table.LeastFold))
	return strings.ReplaceAll(text, "\n", "\n"+strings.Repeat(" ", column))
}

// Sentence writes prose.
func Sentence(w io.Writer, text string) error {
	if limit := Width(); limit > 0 {
		text = table.Fold(text, limit)
	}
	_, err := fmt.Fprintln(w, text)
	return err
}

// CSVCell quotes a value where CSV needs it.
func CSVCell(s string) string {
	if strings.ContainsAny(s, ",\"\n") {
		return `"` + strings.ReplaceAll(s, `"`, `""`) + `"`
	}
	return s
}
