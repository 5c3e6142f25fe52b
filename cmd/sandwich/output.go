package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/olekukonko/tablewriter"
	"github.com/olekukonko/tablewriter/renderer"
	"github.com/olekukonko/tablewriter/tw"
	"github.com/spf13/cobra"
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
	for i, t := range (table{header, clean, numbers}).fit(outputWidth()) {
		if i > 0 {
			fmt.Fprintln(w)
		}
		if err := t.render(w); err != nil {
			return err
		}
	}
	return nil
}

func (t table) render(w io.Writer) error {
	align := make([]tw.Align, len(t.header))
	for i := range align {
		align[i] = tw.AlignLeft
		if slices.Contains(t.numbers, i) {
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
	out.Header(t.header)
	for _, r := range t.rows {
		if err := out.Append(r); err != nil {
			return err
		}
	}
	return out.Render()
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
	return strings.ReplaceAll(fold(text, max(limit-column, leastFold)), "\n", "\n"+strings.Repeat(" ", column))
}

// printSentence writes prose.
func printSentence(w io.Writer, text string) error {
	if limit := outputWidth(); limit > 0 {
		text = fold(text, limit)
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
