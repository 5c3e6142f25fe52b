package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
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

// printTable writes rows under a header: names to the left, numbers to the right.
func printTable(w io.Writer, header []string, rows [][]string, numbers ...int) error {
	align := make([]tw.Align, len(header))
	for i := range align {
		align[i] = tw.AlignLeft
		if slices.Contains(numbers, i) {
			align[i] = tw.AlignRight
		}
	}
	t := tablewriter.NewTable(w,
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
	t.Header(header)
	for _, r := range rows {
		cells := make([]string, len(r))
		for i := range r {
			cells[i] = printable(r[i]) // here, so that columns stay as wide as their cells
		}
		if err := t.Append(cells); err != nil {
			return err
		}
	}
	return t.Render()
}

// csvCell quotes a value where CSV needs it.
func csvCell(s string) string {
	if strings.ContainsAny(s, ",\"\n") {
		return `"` + strings.ReplaceAll(s, `"`, `""`) + `"`
	}
	return s
}

// sortedKeys lists the members of a set in order.
func sortedKeys(set map[string]bool) []string { return slices.Sorted(maps.Keys(set)) }
