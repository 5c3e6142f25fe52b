package load

import (
	"cmp"
	"context"
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sandwich/cmd/sandwich/internal/cli/exit"
	"sandwich/cmd/sandwich/internal/cli/flags"
	"sandwich/cmd/sandwich/internal/show"
	"sandwich/profiles"
	"sandwich/runtime/session"
	"sandwich/tuner/measure/load"
	"sandwich/tuner/replay"
)

func newGoal() *cobra.Command {
	var f loadFlags
	c := &cobra.Command{
		Use:   "goal NAME...",
		Short: "Measure goals of serving two classes, and compare them with their bounds",
		Long: `Measure goals and compare them with their bounds. Each goal has runs of its own:
  open      all arrivals at once under fcfs, then at 0.9 of that rate: the reactive ones alone, and all under each policy
            and fcfs
  backlog   the reactive ones alone, then, under each policy or on a server, after an endless proactive backlog
  quanta    a reactive request that decodes while proactive prompts of 2048 tokens (or --ctx) wait
  halt      time from a reactive arrival to its first op while such a prompt is processed, young and aged`,
		Example: `  sandwich bench load goal open backlog --policy sandwich,preempt,share --reactive 40 --proactive 80 --duration 30s
  sandwich bench load goal open backlog --seeds 3 --reactive 20 --proactive 40
  sandwich bench load goal quanta halt --ctx 2560 --duration 20s`,
		Args: flags.SomeArgs("a goal: " + strings.Join(load.Goals(), ", ")),
	}
	f.addEngine(c)
	f.addServer(c.Flags())
	f.addArrivals(c.Flags())
	f.addFiles(c.Flags())
	c.Flags().IntVar(&f.seeds, "seeds", 1, "number of runs, with --seed and the following seeds; more than one "+
		"reports the range")
	format := flags.Format(c, "table", "json", "csv")
	c.RunE = func(c *cobra.Command, args []string) error {
		f.goals = args
		if err := cmp.Or(f.check(), f.checkGoals()); err != nil {
			return err
		}
		t, err := f.recorded(c.Context())
		if err != nil {
			return err
		}
		return f.measureGoals(c.Context(), c.OutOrStdout(), *format, t)
	}
	return c
}

func (f *loadFlags) checkGoals() error {
	if f.seeds < 1 || f.seeds > 100 {
		return exit.Usage(fmt.Errorf("--seeds %d is out of range; give a number from 1 to 100", f.seeds))
	}
	for _, g := range f.goals {
		if !slices.Contains(load.Goals(), g) {
			return exit.Usage(fmt.Errorf("goal %s is unknown; choose among %s", show.Clip(g, 20),
				strings.Join(load.Goals(), ", ")))
		}
		if f.url != "" && g != load.GoalBacklog {
			return exit.Usage(fmt.Errorf("goal %s needs the engine in this process; leave --url out", g))
		}
	}
	return nil
}

// measureGoals measures the goals for each seed and prints the figures with their bounds.
func (f *loadFlags) measureGoals(ctx context.Context, out io.Writer, format string, t replay.Trace) error {
	stage := load.Stage{Policies: f.policies, Seed: f.seed, Parallel: f.sizes.Parallel,
		During: f.during, Note: show.Notice, Aging: f.sizes.Aging}
	where := "on " + f.url
	if f.url != "" {
		stage.Policies = []string{f.url}
		stage.Open = func(string, time.Duration) (load.Target, func(), error) {
			return f.server(), func() {}, nil
		}
	} else {
		s, err := f.session.Open()
		if err != nil {
			return err
		}
		defer s.Close()
		f.sizes.Context = s.ContextLimit(f.sizes.Context)
		where = fmt.Sprintf("%s on %s", s.Name, s.Profile.Host.CPUModel)
		stage.Open = func(policy string, aging time.Duration) (load.Target, func(), error) {
			return f.stage(ctx, s, policy, aging)
		}
	}
	stage.Context = f.sizes.Context
	var runs [][]load.Figure
	for seed := f.seed; f.seeds > len(runs); seed++ {
		if f.seed, stage.Seed = seed, seed; len(runs) > 0 {
			var err error
			if t, err = f.arrivals(1); err != nil {
				return err
			}
		}
		stage.Trace = f.fit(t)
		var figures []load.Figure
		for _, goal := range f.goals {
			list, err := stage.Measure(ctx, goal)
			if err != nil {
				return err
			}
			figures = append(figures, list...)
		}
		runs = append(runs, figures)
	}
	figures := load.OverSeeds(runs)
	switch format {
	case "json":
		return show.JSON(out, figures)
	case "csv":
		return csvGoals(out, figures)
	}
	return tableGoals(out, figures, where)
}

// stage opens an engine for a goal.
func (f *loadFlags) stage(ctx context.Context, s *session.Session, policy string, aging time.Duration) (
	load.Target, func(), error,
) {
	sizes := f.sizes
	sizes.Policy, sizes.Aging = policy, aging
	show.Notice("policy " + policy)
	target, closed, err := engineTarget(ctx, s, sizes)
	return target, closed, err
}

// tableGoals prints the figures and the number of bounds that hold.
func tableGoals(out io.Writer, figures []load.Figure, where string) error {
	var rows [][]string
	met, bound := 0, 0
	for i := range figures {
		f := &figures[i]
		value := func(v float64) string {
			if f.Rate {
				return fmt.Sprintf("%.4g /s", v)
			}
			return profiles.FormatSeconds(v)
		}
		ratio := func(v float64) string {
			if f.Alone == 0 {
				return value(v)
			}
			return fmt.Sprintf("%.2f", v)
		}
		row := []string{f.Goal, f.Policy, f.What, "", value(f.Mixed), ratio(f.Measured), "", ""}
		if f.Alone > 0 {
			row[3] = value(f.Alone)
		}
		if f.Seeds > 1 {
			row[5] += fmt.Sprintf(" (%s to %s)", ratio(f.Lowest), ratio(f.Highest))
		}
		if f.Bound > 0 {
			row[6], row[7] = "<= "+ratio(f.Bound), "missed"
			if f.Least {
				row[6] = ">= " + ratio(f.Bound)
			}
			if bound++; f.Met() {
				row[7], met = "met", met+1
			}
		}
		rows = append(rows, append(row, strconv.Itoa(f.Samples)))
	}
	header := []string{"goal", "policy", "what", "alone", "mixed", "measured", "bound", "", "samples"}
	if err := show.Table(out, header, rows, 3, 4, 5, 8); err != nil {
		return err
	}
	if slices.ContainsFunc(figures, func(f load.Figure) bool { return f.Seeds > 1 }) {
		fmt.Fprint(out, "\nFigures are means over the seeds, with the lowest and the highest in brackets. A bound "+
			"holds if it does for every seed.")
	}
	fmt.Fprintf(out,
		"\nmeasured is the figure of the mixed run divided by that alone, or the figure if there is no run "+
			"alone.\n%d of %d bounds hold, %s.\n", met, bound, where)
	return nil
}

func csvGoals(out io.Writer, figures []load.Figure) error {
	w := csv.NewWriter(out)
	header := []string{"goal", "policy", "what", "alone", "mixed", "measured", "bound", "at_least", "met", "samples",
		"seeds", "lowest", "highest"}
	if err := w.Write(header); err != nil {
		return err
	}
	number := func(v float64) string { return strconv.FormatFloat(v, 'g', 6, 64) }
	for i := range figures {
		f := &figures[i]
		cells := []string{f.Goal, f.Policy, f.What, number(f.Alone), number(f.Mixed), number(f.Measured),
			number(f.Bound), strconv.FormatBool(f.Least), strconv.FormatBool(f.Met()), strconv.Itoa(f.Samples),
			strconv.Itoa(max(1, f.Seeds)), number(f.Lowest), number(f.Highest)}
		if err := w.Write(cells); err != nil {
			return err
		}
	}
	w.Flush()
	return w.Error()
}
