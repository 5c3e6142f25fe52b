package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"sandwich/cmd/sandwich/internal/show"
)

// report describes how to print the rows of a benchmark: as JSON with the field names of the row
// type, as CSV, or as a table.
type report[R any] struct {
	title func(first *R) string // a line above the table; may be nil

	columns []string // of the table
	numbers []int    // the columns to align to the right
	cells   func(r *R) []string

	header string            // of the CSV
	line   func(r *R) string // by its columns
}

// print writes the rows in one of the formats json, csv and table.
func (p *report[R]) print(w io.Writer, rows []R, format string) error {
	switch format {
	case "json":
		return show.JSON(w, rows)
	case "csv":
		fmt.Fprintln(w, p.header)
		for i := range rows {
			if _, err := fmt.Fprintln(w, p.line(&rows[i])); err != nil {
				return err
			}
		}
		return nil
	}
	if p.title != nil && len(rows) > 0 {
		fmt.Fprintf(w, "%s\n\n", p.title(&rows[0]))
	}
	table := make([][]string, len(rows))
	for i := range rows {
		table[i] = p.cells(&rows[i])
	}
	return show.Table(w, p.columns, table, p.numbers...)
}

// after prints the rows that a measurement ended with, unless it failed.
func (p *report[R]) after(c *cobra.Command, format string) func(rows []R, err error) error {
	return func(rows []R, err error) error {
		if err != nil {
			return err
		}
		return p.print(c.OutOrStdout(), rows, format)
	}
}
