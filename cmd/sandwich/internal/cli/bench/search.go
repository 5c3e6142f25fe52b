package bench

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sandwich/cmd/sandwich/internal/build"
	"sandwich/cmd/sandwich/internal/cli/exit"
	"sandwich/cmd/sandwich/internal/cli/flags"
	"sandwich/cmd/sandwich/internal/cli/machine"
	"sandwich/cmd/sandwich/internal/cli/modelflags"
	"sandwich/cmd/sandwich/internal/show"
	"sandwich/profiles"
	"sandwich/profiles/calibrate"
	"sandwich/tuner/compare"
	"sandwich/tuner/run"
	"sandwich/tuner/search"
)

func newBenchSearch() *cobra.Command {
	var o compare.Options
	var record recordFlags
	c := &cobra.Command{
		Use:   "search",
		Short: "Compare the kernel searches of the papers on one weight shape",
		Long: `Search kernels for one weight with each strategy, each with the whole budget and without earlier results, and compare the
schedules on numbers of rows that no strategy was asked for. Strategies that search each M separately are asked for these
numbers only; "all M" is the estimated time for every M. --sigma runs the sandwich strategy once per size of its sliding
window.

--record writes a folder of grids for bench heuristic: host.yaml, as probe --measure full writes it, and for each of
--weights the timings (TYPE-NxK.jsonl.gz) and the results of the strategies (TYPE-NxK.csv). It spends --budget-per-m on
each of 10 numbers of rows of each weight, and always times the choice of the default plan. The same command resumes an
interrupted recording. A folder of another machine or another version of this program is refused.

` + strategiesText(),
		Example: `  sandwich bench search --shape 2048x2048 --type q8_0 --budget 30s
  sandwich bench search --sigma 4,8,16,32 --strategies sandwich --format csv
  sandwich bench search --record machines/here --budget-per-m 5s
  sandwich bench search --record machines/here --weights 4096x4096:q8_0,4096x11008:q4_k --threads 2`,
		Args: flags.ExactArgs(0, ""),
	}
	fs := c.Flags()
	shape := fs.String("shape", "2048x2048", "weight as NxK")
	typ := fs.String("type", "f32", "type of the weight")
	fs.StringVar(&o.Compute, "compute", "auto", "arithmetic by weight: auto, f32, int8 (quantized weights), "+
		"int8-256 or int8-k (weights in blocks of 256), bf16 or bf16-tile (bf16 weights)")
	fs.StringVar(&o.ISA, "isa", "", "instruction set of the kernels (default: the widest)")
	fs.IntVarP(&o.Threads, "threads", "t", 0, "worker threads (default: one per core)")
	fs.IntVar(&o.MaxM, "seq-max", 2048, "maximum number of rows to search for")
	flags.Duration(fs, &o.Run.Budget, "budget", 90*time.Second, "time per strategy")
	flags.Duration(fs, &o.PerM, "budget-per-m", time.Minute,
		"time per held-out M for strategies that search each M separately")
	fs.StringVar(&o.Effort, "effort", "standard", "quick, standard or full")
	fs.StringSliceVar(&o.Strategies, "strategies", search.Strategies(), "strategies to compare")
	fs.IntSliceVar(&o.Sigmas, "sigma", []int{search.DefaultSigma}, "sizes of the sliding window")
	fs.StringVar(&o.Run.Journal, "journal", "", "file for finished trials; the same command with more strategies, or "+
		"after an interruption, resumes from it")
	fs.Uint64Var(&o.Run.Seed, "seed", 1, "seed of the searches")
	record.add(c)
	format := flags.Format(c, "table", "json", "csv")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if err := record.check(c, &o); err != nil {
			return exit.Usage(err)
		}
		key, err := weightKey("--shape", *shape, *typ)
		if err == nil {
			err = checkCompare(&o)
		}
		if err != nil {
			return exit.Usage(err)
		}
		if record.dir != "" {
			return record.record(c.Context(), o)
		}
		o.Key = key
		return searchReport.After(c, *format)(compareSearches(c.Context(), o))
	}
	return c
}

// strategiesText lists the strategies with a description of each, for help texts.
func strategiesText() string {
	var b strings.Builder
	for _, name := range search.Strategies() {
		fmt.Fprintf(&b, "  %-11s %s\n", name, search.About(name))
	}
	return strings.TrimRight(b.String(), "\n")
}

func checkCompare(o *compare.Options) error {
	if _, err := search.ParseEffort(o.Effort); err != nil {
		return fmt.Errorf("--effort: %w", err)
	}
	for _, s := range o.Strategies {
		if search.About(s) == "" {
			return flags.Unknown("strategies", s, search.Strategies()...)
		}
	}
	for _, s := range o.Sigmas {
		if s < 1 || s > 1<<16 {
			return fmt.Errorf("--sigma %d is out of range; give numbers from 1 to %d", s, 1<<16)
		}
	}
	switch {
	case o.MaxM < 1 || o.MaxM > 1<<16:
		return fmt.Errorf("--seq-max %d is out of range; give a number of rows from 1 to %d", o.MaxM, 1<<16)
	case o.Run.Budget < 100*time.Millisecond || o.Run.Budget > 100*time.Hour:
		return fmt.Errorf("--budget %s is out of range; give a time from 100ms to 100h", o.Run.Budget)
	case o.PerM < time.Millisecond || o.PerM > 100*time.Hour:
		return fmt.Errorf("--budget-per-m %s is out of range; give a time from 1ms to 100h", o.PerM)
	case len(o.Strategies) == 0 || len(o.Sigmas) == 0:
		return errors.New("--strategies or --sigma is empty; give at least one value of each")
	}
	return nil
}

func compareSearches(ctx context.Context, o compare.Options) ([]compare.Row, error) {
	host, err := machine.Live()
	if err != nil {
		return nil, err
	}
	f := modelflags.Flags{ISA: o.ISA, Compute: o.Compute, Threads: o.Threads}
	if err := f.OneKind(); err != nil {
		return nil, exit.Usage(err)
	}
	if err := f.CheckOn(host); err != nil {
		return nil, exit.Usage(err)
	}
	if err := machine.MeasureCeilings(ctx, host, calibrate.Options{}); err != nil {
		return nil, err
	}
	line, done := show.LiveLine()
	defer done()
	o.Profile, o.Run.Build, o.Run.Progress = host, build.Commit(), func(p run.Progress) { line(p.String()) }
	rows, err := compare.Searches(ctx, o)
	if err != nil && ctx.Err() == nil {
		err = exit.Model(err)
	}
	return rows, err
}

var searchReport = show.Report[compare.Row]{
	Columns: []string{"strategy", "sigma", "geomean", "mean GFLOP/s", "of best", "of exhaustive", "search", "all M",
		"trials", "rules"},
	Numbers: []int{1, 2, 3, 4, 5, 6, 7, 8, 9},
	Cells:   searchCells,
	Header:  "strategy,sigma,gflops,mean_gflops,of_best,of_exhaustive,seconds,seconds_all_m,trials,trial_seconds,rules",
	Line: func(r *compare.Row) string {
		return fmt.Sprintf("%s,%d,%.2f,%.2f,%.4f,%.4f,%.2f,%.0f,%d,%.3g,%d", r.Strategy, r.Sigma, r.GFLOPS, r.Mean,
			r.OfBest, r.OfExhaustive, r.Seconds, r.AllM, r.Trials, r.Trial, r.Rules)
	},
}

func searchCells(r *compare.Row) []string {
	or := func(have bool, text string) string {
		if have {
			return text
		}
		return ""
	}
	trials := strconv.Itoa(r.Trials)
	if len(r.Unfinished) > 0 {
		trials += fmt.Sprintf(" (cut at m %s)", strings.Trim(fmt.Sprint(r.Unfinished), "[]"))
	}
	return []string{r.Strategy, or(r.Sigma > 0, strconv.Itoa(r.Sigma)), fmt.Sprintf("%.1f", r.GFLOPS),
		fmt.Sprintf("%.1f", r.Mean),
		fmt.Sprintf("%.1f %%", 100*r.OfBest), or(r.OfExhaustive > 0, fmt.Sprintf("%.1f %%", 100*r.OfExhaustive)),
		profiles.FormatSeconds(r.Seconds), or(r.AllM > 0, profiles.FormatSeconds(r.AllM)), trials,
		strconv.Itoa(r.Rules)}
}
