package bench

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"sandwich/cmd/sandwich/internal/cli/exit"
	"sandwich/cmd/sandwich/internal/cli/flags"
	"sandwich/cmd/sandwich/internal/cli/machine"
	"sandwich/cmd/sandwich/internal/cli/modelflags"
	"sandwich/cmd/sandwich/internal/show"
	"sandwich/profiles/calibrate"
	"sandwich/runtime/api"
	"sandwich/runtime/session"
	"sandwich/runtime/textio"
	"sandwich/tuner/measure/llm"
)

// embedBenchFlags holds the flags of bench embed.
type embedBenchFlags struct {
	session           modelflags.Flags
	texts, reps       int
	shortest, longest int
	ceiling           bool
}

func newBenchEmbed() *cobra.Command {
	f := embedBenchFlags{session: modelflags.Flags{Wants: modelflags.ForVector}}
	c := &cobra.Command{
		Use:   "embed --model M",
		Short: "Measure how fast an embedding or rerank model reads many texts",
		Long: `Measure how fast the engine reads texts of random tokens. The engine packs them into full forwards, as it does for the
clients of a server. The output also has the ceiling, the fill of the forwards, the share of time by kind of op, and the
rate at which the tokenizer encodes the same texts.`,
		Example: `  sandwich model synth --preset bert-base --type q8_0 -o bert.gguf
  sandwich bench embed --model bert.gguf
  sandwich bench embed --model qwen3-embedding-0.6b.gguf --texts 200 --shortest 20 --longest 40 --format json`,
		Args: flags.ExactArgs(0, ""),
	}
	f.session.Add(c)
	fs := c.Flags()
	fs.IntVar(&f.texts, "texts", 1000, "number of texts")
	fs.IntVar(&f.shortest, "shortest", 20, "tokens of the shortest text")
	fs.IntVar(&f.longest, "longest", 400, "tokens of the longest text")
	fs.IntVarP(&f.reps, "reps", "r", 3, "samples, after one warm-up run")
	machine.CeilingFlag(fs, &f.ceiling)
	format := flags.Format(c, "table", "json", "csv")
	c.RunE = func(c *cobra.Command, _ []string) error { return embedReport.After(c, *format)(f.run(c.Context())) }
	return c
}

func (f *embedBenchFlags) run(ctx context.Context) ([]llm.EmbedRow, error) {
	switch {
	case f.texts < 1 || f.texts > modelflags.MaxTexts:
		return nil, exit.Usage(fmt.Errorf("--texts %d: give a number from 1 to %d", f.texts, modelflags.MaxTexts))
	case f.shortest < 1 || f.longest < f.shortest || f.longest > modelflags.MaxContext:
		return nil, exit.Usage(fmt.Errorf("--shortest %d and --longest %d: give lengths from 1 to %d", f.shortest,
			f.longest, modelflags.MaxContext))
	case f.reps < 1 || f.reps > 10000:
		return nil, exit.Usage(fmt.Errorf("--reps %d: give a number from 1 to 10000", f.reps))
	}
	s, err := f.session.Open()
	if err != nil {
		return nil, err
	}
	defer s.Close()
	if f.ceiling {
		if err := machine.MeasureCeilings(ctx, s.Profile, calibrate.Options{}); err != nil {
			return nil, err
		}
	}
	const parallel = 8
	e, err := s.Engine(ctx, session.Sizes{Context: f.longest, Parallel: parallel, Queue: parallel})
	if err != nil {
		return nil, exit.Model(err)
	}
	defer e.Close()
	o := llm.EmbedOptions{Texts: llm.RandomTexts(1, f.texts, f.shortest, f.longest, s.Shape.Vocab),
		Reps: f.reps, Engine: e, Host: s.Profile}
	if s.CheckTokenizer() == nil {
		var spelled []string
		for _, text := range o.Texts {
			spelled = append(spelled, s.Tok.Decode(text, false))
		}
		o.Encode = func(ctx context.Context) error {
			_, err := textio.New(e, s.Tok).Prompts(ctx, &api.Embedding{Texts: spelled})
			return err
		}
	}
	step, done := show.StepBar("bench embed", f.reps+1)
	defer done()
	o.Step = step
	row, err := llm.Embed(ctx, o)
	if err != nil {
		return nil, err
	}
	row.Model = s.Name
	return []llm.EmbedRow{*row}, nil
}

var embedReport = show.Report[llm.EmbedRow]{
	Title: func(r *llm.EmbedRow) string { return r.Model + " on " + r.CPU },
	Columns: []string{"texts", "tokens", "plan", "tokens/s", "min", "max", "texts/s", "fill", "ceiling",
		"of ceiling",
		"encoding/s", "time by op"},
	Numbers: show.ColumnsFrom(3, 11),
	Cells: func(r *llm.EmbedRow) []string {
		ceiling, of := "", ""
		if r.Ceiling > 0 {
			ceiling, of = fmt.Sprintf("%.0f (%s)", r.Ceiling, r.CeilingOf), show.Share(r.Rate/r.Ceiling)
		}
		return []string{fmt.Sprint(r.Texts), fmt.Sprint(r.Tokens), r.Plan, fmt.Sprintf("%.0f", r.Rate),
			fmt.Sprintf("%.0f", r.Min), fmt.Sprintf("%.0f", r.Max), fmt.Sprintf("%.1f", r.PerText),
			show.Share(r.Fill), ceiling, of, fmt.Sprintf("%.0f", r.Encode), sharesText(r.Shares)}
	},
	Header: "model,texts,tokens,plan,tokens_per_second,min,max,texts_per_second,fill,ceiling,encode_tokens_per_second",
	Line: func(r *llm.EmbedRow) string {
		return fmt.Sprintf("%s,%d,%d,%s,%.2f,%.2f,%.2f,%.3f,%.3f,%.1f,%.0f", show.CSVCell(r.Model), r.Texts, r.Tokens,
			show.CSVCell(r.Plan), r.Rate, r.Min, r.Max, r.PerText, r.Fill, r.Ceiling, r.Encode)
	},
}

// sharesText lists the shares of at least 1 %, in descending order.
func sharesText(shares map[string]float64) string {
	kinds := slices.SortedFunc(maps.Keys(shares), func(a, b string) int {
		return cmp.Or(cmp.Compare(shares[b], shares[a]), cmp.Compare(a, b))
	})
	var parts []string
	for _, kind := range kinds {
		if shares[kind] >= 0.01 {
			parts = append(parts, fmt.Sprintf("%s %.0f %%", kind, 100*shares[kind]))
		}
	}
	return strings.Join(parts, ", ")
}
