package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"sandwich/plans"
)

func newPlanDiff() *cobra.Command {
	var exit bool
	c := &cobra.Command{
		Use:   "diff A B",
		Short: "Print what separates two plans",
		Example: `  sandwich plan diff old.plan new.plan
  sandwich plan diff old.plan new.plan --exit-code --format markdown`,
		Args: exactArgs(2, "two plans"),
	}
	c.Flags().BoolVar(&exit, "exit-code", false, "exit with 1 where the plans differ")
	format := formatFlag(c, "text", "json", "markdown")
	c.RunE = func(c *cobra.Command, args []string) error {
		a, err := plans.Read(args[0])
		if err != nil {
			return planError(err)
		}
		b, err := plans.Read(args[1])
		if err != nil {
			return planError(err)
		}
		changes := plans.Diff(&a.Plan, &b.Plan)
		if err := printChanges(c.OutOrStdout(), changes, [2]string{args[0], args[1]}, *format); err != nil {
			return err
		}
		if exit && len(changes) > 0 {
			return silent(exitFailed)
		}
		return nil
	}
	return c
}

func printChanges(w io.Writer, changes []plans.Change, names [2]string, format string) error {
	if format == "json" {
		if changes == nil {
			changes = []plans.Change{}
		}
		return printJSON(w, map[string]any{"changes": changes})
	}
	if len(changes) == 0 {
		_, err := fmt.Fprintln(w, "the plans are equal")
		return err
	}
	for len(changes) > 0 {
		n := 1
		for n < len(changes) && changes[n].Group == changes[0].Group {
			n++
		}
		if err := printChangeGroup(w, changes[:n], names, format); err != nil {
			return err
		}
		if changes = changes[n:]; len(changes) > 0 {
			fmt.Fprintln(w)
		}
	}
	return nil
}

// printChangeGroup prints what belongs together under one heading, both plans side by side.
func printChangeGroup(w io.Writer, changes []plans.Change, names [2]string, format string) error {
	header := []string{changes[0].Group, names[0], names[1]}
	var rows [][]string
	for _, c := range changes {
		rows = append(rows, []string{c.Item, orDash(c.Old), orDash(c.New)})
	}
	if format != "markdown" {
		return printTable(w, header, rows)
	}
	fmt.Fprintf(w, "%s\n|---|---|---|\n", markdownRow(header))
	for _, r := range rows {
		fmt.Fprintln(w, markdownRow(r))
	}
	return nil
}

// orDash marks what one of two plans does not have.
func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func markdownRow(cells []string) string {
	out := "|"
	for _, c := range cells {
		out += " " + strings.ReplaceAll(c, "|", `\|`) + " |"
	}
	return out
}
