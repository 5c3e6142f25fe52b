package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/mattn/go-isatty"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"sandwich/cmd/sandwich/internal/table"
)

// formatFlag adds --format with its choices, the first being the default.
func formatFlag(c *cobra.Command, choices ...string) *string {
	f := &formatValue{choices[0], choices}
	c.Flags().Var(f, "format", "output format: "+strings.Join(choices, ", "))
	return &f.format
}

// formatValue is a pflag.Value that takes nothing but its choices.
type formatValue struct {
	format  string
	choices []string
}

func (f *formatValue) Set(format string) error {
	if !slices.Contains(f.choices, format) {
		return fmt.Errorf("unknown format: use %s", strings.Join(f.choices, ", "))
	}
	f.format = format
	return nil
}

func (f *formatValue) String() string { return f.format }
func (f *formatValue) Type() string   { return "string" }

func printJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// printTable writes rows under a header, names to the left, numbers to the right, in lines that
// the terminal does not break.
func printTable(w io.Writer, header []string, rows [][]string, numbers ...int) error {
	clean := make([][]string, len(rows)) // here, so that columns are as wide as what is shown
	for i, r := range rows {
		for _, cell := range r {
			clean[i] = append(clean[i], printable(cell))
		}
	}
	for i, t := range (table.Table{Header: header, Rows: clean, Numbers: numbers}).Fit(outputWidth()) {
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

// printFields writes names with their values.
func printFields(w io.Writer, rows [][]string) {
	for _, r := range rows {
		fmt.Fprintf(w, "  %-12s %s\n", r[0], hanging(r[1], 15))
	}
}

// hanging folds a text that begins at a column so that its other lines begin there too. A hash
// stays whole, to be copied.
func hanging(text string, column int) string {
	limit := outputWidth()
	if limit == 0 || !strings.Contains(text, " ") {
		return text
	}
	text = table.Fold(text, max(limit-column, table.LeastFold))
	return strings.ReplaceAll(text, "\n", "\n"+strings.Repeat(" ", column))
}

// printSentence writes prose.
func printSentence(w io.Writer, text string) error {
	if limit := outputWidth(); limit > 0 {
		text = table.Fold(text, limit)
	}
	_, err := fmt.Fprintln(w, text)
	return err
}

// csvCell quotes a value where CSV needs it.
func csvCell(s string) string {
	if strings.ContainsAny(s, ",\"\n") {
		return `"` + strings.ReplaceAll(s, `"`, `""`) + `"`
	}
	return s
}
