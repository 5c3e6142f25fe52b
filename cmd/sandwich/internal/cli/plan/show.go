package plan

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"sandwich/cmd/sandwich/internal/cli/exit"
	"sandwich/cmd/sandwich/internal/cli/flags"
	"sandwich/cmd/sandwich/internal/footprint"
	"sandwich/cmd/sandwich/internal/outfile"
	"sandwich/cmd/sandwich/internal/plangraph"
	"sandwich/cmd/sandwich/internal/planreport"
	"sandwich/cmd/sandwich/internal/show"
	"sandwich/plans/bundle"
	"sandwich/plans/summary"
)

// showFlags holds the flags of plan show.
type showFlags struct {
	kernels bool
	graph   string // "", text or svg
	svg     string // file
	forward graphForward
	format  *string
}

func newPlanShow() *cobra.Command {
	var f showFlags
	c := &cobra.Command{
		Use:   "show PLAN",
		Short: "Print the contents of a plan, how it was found, and where its ops run",
		Long: `Print the contents of a plan and how it was found, then where each op runs and why, by the ceilings of the plan's host.
Below the ridge of the cores an op is memory-bound and runs on the cores. Between this ridge and that of a matrix unit it
runs on the matrix unit. Above both it is split between them along the larger output dimension, in whole tiles, by their
measured joint rates (SMEPilot, sections 3.2 and 4.1).

--graph prints the execution graph of both phases instead (Agent.xpu, section 4.2): ops grouped into kernels, the target of
each with its predicted time and bytes, the time on the other target, and edges with the activations, keys and values that
pass between kernels. Times are those from which --device auto chooses a placement: on the cores the measured rate of the
tuned plan, else a share of the ceilings, divided among the ops by their ceilings; on the device its measured rates, which
are in host.yaml or were measured on this host by 'doctor devices'. --graph=svg writes the graph as SVG to stdout, --svg
FILE to a file.`,
		Example: `  sandwich plan show llama.plan --kernels
  sandwich plan show llama.plan --graph
  sandwich plan show llama.plan --svg graph.svg
  sandwich plan show llama.plan --format json | jq .evidence`,
		Args: flags.ExactArgs(1, "a plan"),
	}
	fs := c.Flags()
	fs.BoolVar(&f.kernels, "kernels", false, "list the schedules of every table")
	fs.StringVar(&f.graph, "graph", "", "print the execution graph of both phases instead: text or svg")
	fs.Lookup("graph").NoOptDefVal = graphText
	fs.StringVar(&f.svg, "svg", "", "SVG file to write the execution graph to")
	fs.IntVar(&f.forward.rows, "rows", 512, "with --graph or --svg: maximum rows of the prefill")
	fs.IntVar(&f.forward.sequences, "sequences", 1, "with --graph or --svg: sequences of the decode batch")
	fs.IntVar(&f.forward.context, "context", 256, "with --graph or --svg: positions before the rows of each sequence")
	f.format = flags.Format(c, "text", "json")
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := f.check(); err != nil {
			return exit.Usage(err)
		}
		b, err := bundle.Read(args[0])
		if err != nil {
			return exit.Plan(err)
		}
		if f.graph != "" || f.svg != "" {
			return f.printGraphs(c, b)
		}
		return f.print(c.OutOrStdout(), b)
	}
	return c
}

// Values of --graph.
const (
	graphText = "text"
	graphSVG  = "svg"
)

func (f *showFlags) check() error {
	if f.graph != "" && f.graph != graphText && f.graph != graphSVG {
		return flags.Unknown("graph", f.graph, graphText, graphSVG)
	}
	return f.forward.check()
}

// print prints the plan, and where its ops run.
func (f *showFlags) print(w io.Writer, b *bundle.Bundle) error {
	if *f.format == "json" {
		placed, _ := placedByPlan(b) // a profile without ceilings gives no placement
		return show.JSON(w, shownPlan{Summary: summary.Of(b), Placed: placed})
	}
	planreport.Print(w, b, footprint.Text(&b.Plan))
	if f.kernels {
		if err := planreport.Schedules(w, summary.Of(b)); err != nil {
			return err
		}
	}
	if err := planreport.Races(w, b); err != nil {
		return err
	}
	return printPlaced(w, b)
}

// printGraphs prints the execution graphs of both phases and writes them to the file of --svg.
func (f *showFlags) printGraphs(c *cobra.Command, b *bundle.Bundle) error {
	graphs, notes, err := f.forward.graphs(b)
	if err != nil {
		return exit.Plan(fmt.Errorf("no execution graph of %s: %w", b.Plan.Name, err))
	}
	svg := func(w io.Writer) error { return plangraph.SVG(w, b.Plan.Name+": "+b.Plan.Model.Name, graphs) }
	if f.svg != "" {
		if err := outfile.Write(c.Context(), f.svg, svg); err != nil {
			return err
		}
	}
	w := c.OutOrStdout()
	switch {
	case f.graph == graphSVG:
		return svg(w)
	case *f.format == "json":
		return show.JSON(w, map[string]any{"graphs": graphs, "notes": notes})
	case f.graph == "":
		return nil
	}
	if err := plangraph.Text(w, graphs); err != nil {
		return err
	}
	for _, n := range notes {
		if err := show.Sentence(w, show.Printable(n)); err != nil {
			return err
		}
	}
	return nil
}
