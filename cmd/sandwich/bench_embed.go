package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"sandwich/cmd/sandwich/internal/show"
	"sandwich/profiles/calibrate"
	"sandwich/runtime/api"
	"sandwich/runtime/session"
	"sandwich/runtime/textio"
	"sandwich/tuner/measure"
)

// embedBenchFlags holds the flags of bench embed.
type embedBenchFlags struct {
	session           sessionFlags
	texts, reps       int
	shortest, longest int
	ceiling           bool
}

func newBenchEmbed() *cobra.Command {
	f := embedBenchFlags{session: sessionFlags{wants: forVector}}
	c := &cobra.Command{
		Use:   "embed --model M",
		Short: "Measure how fast an embedding or rerank model reads many texts",
		Long: `Measure how fast the engine reads texts of random tokens, which it packs into full forwards as it packs those of
a server's clients; it also prints the ceiling, how full forwards were, what the kinds of ops took of them, and how fast the
tokenizer makes tokens of the same texts.`,
		Example: `  sandwich model synth --preset bert-base --type q8_0 -o bert.gguf
  sandwich bench embed --model bert.gguf
  sandwich bench embed --model qwen3-embedding-0.6b.gguf --texts 200 --shortest 20 --longest 40 --format json`,
		Args: exactArgs(0, ""),
	}
	f.session.add(c)
	fs := c.Flags()
	fs.IntVar(&f.texts, "texts", 1000, "number of texts")
	fs.IntVar(&f.shortest, "shortest", 20, "tokens of the shortest text")
	fs.IntVar(&f.longest, "longest", 400, "tokens of the longest text")
	fs.IntVarP(&f.reps, "reps", "r", 3, "samples, in addition to one to warm up")
	fs.BoolVar(&f.ceiling, "roof", true, "measure the ceilings of this machine first")
	format := formatFlag(c, "table", "json", "csv")
	c.RunE = func(c *cobra.Command, _ []string) error { return embedReport.after(c, *format)(f.run(c.Context())) }
	return c
}

func (f *embedBenchFlags) run(ctx context.Context) ([]measure.EmbedRow, error) {
	switch {
	case f.texts < 1 || f.texts > maxTexts:
		return nil, usageError(fmt.Errorf("--texts %d: give a number from 1 to %d", f.texts, maxTexts))
	case f.shortest < 1 || f.longest < f.shortest || f.longest > maxContext:
		return nil, usageError(fmt.Errorf("--shortest %d and --longest %d: give lengths from 1 to %d", f.shortest,
			f.longest, maxContext))
	case f.reps < 1 || f.reps > 10000:
		return nil, usageError(fmt.Errorf("--reps %d: give a number from 1 to 10000", f.reps))
	}
	s, err := f.session.open()
	if err != nil {
		return nil, err
	}
	defer s.Close()
	if f.ceiling {
		if err := measureCeilings(ctx, s.Profile, calibrate.Options{}); err != nil {
			return nil, err
		}
	}
	const parallel = 8
	e, err := s.Engine(ctx, session.Sizes{Context: f.longest, Parallel: parallel, Queue: parallel})
	if err != nil {
		return nil, modelError(err)
	}
	defer e.Close()
	o := measure.EmbedOptions{Texts: measure.RandomTexts(1, f.texts, f.shortest, f.longest, s.Shape.Vocab),
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
	row, err := measure.Embed(ctx, o)
	if err != nil {
		return nil, err
	}
	row.Model = s.Name
	return []measure.EmbedRow{*row}, nil
}

var embedReport = report[measure.EmbedRow]{
	title: func(r *measure.EmbedRow) string { return r.Model + " on " + r.CPU },
	columns: []string{"texts", "tokens", "plan", "tokens/s", "min", "max", "texts/s", "fill", "roof", "of roof",
		"encoding/s", "time by op"},
	numbers: show.ColumnsFrom(3, 11),
	cells: func(r *measure.EmbedRow) []string {
		ceiling, of := "", ""
		if r.Ceiling > 0 {
			ceiling, of = fmt.Sprintf("%.0f (%s)", r.Ceiling, r.CeilingOf), show.Share(r.Rate/r.Ceiling)
		}
		return []string{fmt.Sprint(r.Texts), fmt.Sprint(r.Tokens), r.Plan, fmt.Sprintf("%.0f", r.Rate),
			fmt.Sprintf("%.0f", r.Min), fmt.Sprintf("%.0f", r.Max), fmt.Sprintf("%.1f", r.PerText),
			show.Share(r.Fill), ceiling, of, fmt.Sprintf("%.0f", r.Encode), sharesText(r.Shares)}
	},
	header: "model,texts,tokens,plan,tokens_per_second,min,max,texts_per_second,fill,ceiling,encode_tokens_per_second",
	line: func(r *measure.EmbedRow) string {
		return fmt.Sprintf("%s,%d,%d,%s,%.2f,%.2f,%.2f,%.3f,%.3f,%.1f,%.0f", show.CSVCell(r.Model), r.Texts, r.Tokens,
			show.CSVCell(r.Plan), r.Rate, r.Min, r.Max, r.PerText, r.Fill, r.Ceiling, r.Encode)
	},
}

// sharesText lists the shares of at least 1 %, in descending order.
func sharesText(shares map[string]float64) string {
	kinds := slices.SortedFunc(maps.Keys(shares), func(a, b string) int {
		if shares[a] > shares[b] {
			return -1
		}
		return 1
	})
	var parts []string
	for _, kind := range kinds {
		if shares[kind] >= 0.01 {
			parts = append(parts, fmt.Sprintf("%s %.0f %%", kind, 100*shares[kind]))
		}
	}
	return strings.Join(parts, ", ")
}
