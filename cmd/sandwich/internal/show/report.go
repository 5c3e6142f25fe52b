package show

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"
)

// Report describes how to print the rows of a benchmark: as JSON with the field names of the row
// type, as CSV, or as a table.
type Report[R any] struct {
	Title func(first *R) string // a line above the table; may be nil

	Columns []string // of the table
	Numbers []int    // the columns to align to the right
	Cells   func(r *R) []string

	Header string            // of the CSV
	Line   func(r *R) string // by its columns
}

// Print writes the rows in one of the formats json, csv and table.
func (p *Report[R]) Print(w io.Writer, rows []R, format string) error {
	switch format {
	case "json":
		return JSON(w, rows)
	case "csv":
		fmt.Fprintln(w, p.Header)
		for i := range rows {
			if _, err := fmt.Fprintln(w, p.Line(&rows[i])); err != nil {
				return err
			}
		}
		return nil
	}
	if p.Title != nil && len(rows) > 0 {
		fmt.Fprintf(w, "%s\n\n", p.Title(&rows[0]))
	}
	table := make([][]string, len(rows))
	for i := range rows {
		table[i] = p.Cells(&rows[i])
	}
	return Table(w, p.Columns, table, p.Numbers...)
}

// After prints the rows that a measurement ended with, unless it failed.
func (p *Report[R]) After(c *cobra.Command, format string) func(rows []R, err error) error {
	return func(rows []R, err error) error {
		if err != nil {
			return err
		}
		return p.Print(c.OutOrStdout(), rows, format)
	}
}
