package cachebench

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"sandwich/cmd/sandwich/internal/cli/exit"
	"sandwich/cmd/sandwich/internal/cli/flags"
	"sandwich/cmd/sandwich/internal/cli/modelflags"
	"sandwich/cmd/sandwich/internal/show"
	"sandwich/tuner/measure/prefixes"
)

// loopFlags are the flags of bench cache loop.
type loopFlags struct {
	modelFlags
	prompt, answer, pairs int
	delay                 time.Duration
}

func newLoop() *cobra.Command {
	var f loopFlags
	c := &cobra.Command{
		Use:   "loop",
		Short: "Compare the times between tokens with and without a store on a slow disk",
		Long: `Generate tokens with an engine without a store and with one that stores its prompt meanwhile, interleaved. Each access to
a file of the store takes --delay longer. A third sample per pair, without a store, shows the noise of the machine.`,
		Example: "  sandwich bench cache loop --model llama.gguf --pairs 40 --delay 20ms",
		Args:    flags.ExactArgs(0, ""),
	}
	f.add(c)
	fs := c.Flags()
	fs.IntVar(&f.prompt, "prompt", 512, "tokens of the prompt, which is stored while the answer is generated")
	fs.IntVarP(&f.answer, "tg", "n", 64, "tokens of an answer")
	fs.IntVar(&f.pairs, "pairs", 40, "number of pairs")
	flags.Duration(fs, &f.delay, "delay", 20*time.Millisecond, "additional time of each access to a file")
	format := flags.Format(c, "table", "json", "csv")
	c.RunE = func(c *cobra.Command, _ []string) error { return loopReport.After(c, *format)(f.run(c.Context())) }
	return c
}

func (f *loopFlags) run(ctx context.Context) ([]prefixes.LoopRow, error) {
	for _, err := range []error{inRange("prompt", f.prompt, 65, modelflags.MaxContext/2),
		inRange("tg", f.answer, 2, modelflags.MaxContext/2), inRange("pairs", f.pairs, 1, 10_000)} {
		if err != nil {
			return nil, err
		}
	}
	if f.delay > time.Minute {
		return nil, exit.Usage(fmt.Errorf("--delay %v is too long; use at most 1m", f.delay))
	}
	o, done, err := f.open()
	if err != nil {
		return nil, err
	}
	defer done()
	step, end := show.StepBar("bench cache loop", f.pairs+1)
	defer end()
	row, err := prefixes.Loop(ctx, prefixes.LoopOptions{Open: o.engines(f.prompt + f.answer + 1), Dir: o.dir,
		Delay: f.delay, Prompt: f.prompt, Tokens: f.answer, Pairs: f.pairs, Vocab: o.Shape.Vocab, Step: step})
	if err != nil {
		return nil, exit.With(exit.Input, err)
	}
	row.Model, row.Plan, row.KV, row.CPU = o.describe()
	return []prefixes.LoopRow{*row}, nil
}

var loopReport = show.Report[prefixes.LoopRow]{
	Title: func(r *prefixes.LoopRow) string {
		return fmt.Sprintf("%s on %s, KV cache %s: times between tokens, %d pairs of %d tokens, %s per access to "+
			"a file", r.Model, r.CPU, r.KV, r.Pairs, r.Tokens, seconds(r.Delay))
	},
	Columns: []string{"median", "with store", "ratio", "P99", "again", "with store", "ratio again", "ratio with store",
		"blocks written"},
	Numbers: []int{0, 1, 2, 3, 4, 5, 6, 7, 8},
	Cells: func(r *prefixes.LoopRow) []string {
		return []string{seconds(r.Plain), seconds(r.Cached), fmt.Sprintf("%.4f", r.Ratio), seconds(r.P99),
			seconds(r.Again), seconds(r.Late), fmt.Sprintf("%.4f", r.Same), fmt.Sprintf("%.4f", r.Tail),
			fmt.Sprint(r.Written)}
	},
	Header: "model,kv,plan,pairs,tokens,delay_seconds,median_seconds,cached_median_seconds,median_ratio,p99_seconds," +
		"p99_again_seconds,cached_p99_seconds,p99_ratio_same,p99_ratio,written_objects",
	Line: func(r *prefixes.LoopRow) string {
		return fmt.Sprintf("%s,%s,%s,%d,%d,%g,%.6f,%.6f,%.4f,%.6f,%.6f,%.6f,%.4f,%.4f,%d", show.CSVCell(r.Model), r.KV,
			show.CSVCell(r.Plan), r.Pairs, r.Tokens, r.Delay, r.Plain, r.Cached, r.Ratio, r.P99, r.Again, r.Late,
			r.Same, r.Tail, r.Written)
	},
}
