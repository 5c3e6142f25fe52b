package plan

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"sandwich/cmd/sandwich/internal/cli/exit"
	"sandwich/cmd/sandwich/internal/cli/flags"
	"sandwich/cmd/sandwich/internal/show"
	"sandwich/internal/message"
	"sandwich/plans/bundle"
	"sandwich/plans/review"
)

func newPlanDiff() *cobra.Command {
	var exitCode, kernels bool
	c := &cobra.Command{
		Use:   "diff A B",
		Short: "Print the differences between two plans for a reviewer",
		Long: `Print the differences between two plans, one line per change: the service configuration with PUs in terms of the machine,
the kernels by weight and rows, the expected speed of both when they were tuned, and their hosts. Unchanged parts are
counted. A difference within the noise of its measurement is not a change.`,
		Example: `  sandwich plan diff old.plan new.plan
  sandwich plan diff old.plan new.plan --exit-code --format markdown`,
		Args: flags.ExactArgs(2, "two plans"),
	}
	c.Flags().BoolVar(&exitCode, "exit-code", false, "exit with 1 if the plans differ")
	c.Flags().BoolVar(&kernels, "kernels", false,
		"list every changed schedule, also of tables that changed completely")
	format := flags.Format(c, "text", "json", "markdown")
	c.RunE = func(c *cobra.Command, args []string) error {
		a, err := bundle.Read(args[0])
		if err != nil {
			return exit.Plan(err)
		}
		b, err := bundle.Read(args[1])
		if err != nil {
			return exit.Plan(err)
		}
		r := review.Of(a, b, kernels)
		if err := printReview(c.OutOrStdout(), r, [2]string{args[0], args[1]}, *format); err != nil {
			return err
		}
		if exitCode && r.Count() > 0 {
			return exit.Silent(exit.Failed)
		}
		return nil
	}
	return c
}

func printReview(w io.Writer, r *review.Review, names [2]string, format string) error {
	if format == "json" {
		return show.JSON(w, r)
	}
	if r.Count() == 0 {
		_, err := fmt.Fprintln(w, "the plans are equal")
		return err
	}
	if format == "markdown" {
		printReviewMarkdown(w, r, names)
		return nil
	}
	for _, g := range r.Groups {
		var rows [][]string
		for _, l := range g.Lines {
			rows = append(rows, []string{l.Item, show.OrDash(l.Old), show.OrDash(l.New)})
		}
		if err := show.Table(w, []string{g.Name, names[0], names[1]}, rows); err != nil {
			return err
		}
		fmt.Fprintln(w)
	}
	return show.Sentence(w, r.UnchangedText())
}

// printReviewMarkdown prints a comment for a pull request: a heading and a table for each group,
// with long lists of kernels folded.
func printReviewMarkdown(w io.Writer, r *review.Review, names [2]string) {
	fmt.Fprintf(w, "### Plan diff: %s\n", message.Plural(r.Count(), "change"))
	for _, g := range r.Groups {
		folded := len(g.Lines) > maxOpen
		fmt.Fprintln(w)
		if folded {
			fmt.Fprintf(w, "<details><summary>%s: %s</summary>\n\n", show.Markdown(g.Name), message.Plural(len(g.Lines),
				"change"))
		}
		fmt.Fprintf(w, "%s\n|---|---|---|\n", show.MarkdownLine(g.Name, names[0], names[1]))
		for _, l := range g.Lines {
			fmt.Fprintln(w, show.MarkdownLine(l.Item, show.OrDash(l.Old), show.OrDash(l.New)))
		}
		if folded {
			fmt.Fprintln(w, "\n</details>")
		}
	}
	fmt.Fprintf(w, "\n%s\n", show.Markdown(r.UnchangedText()))
}

// maxOpen limits the lines of a group that a comment shows unfolded.
const maxOpen = 12
