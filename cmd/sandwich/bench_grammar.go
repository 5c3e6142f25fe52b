package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"sandwich/microkernel"
	"sandwich/profiles"
	"sandwich/runtime/answer"
	"sandwich/runtime/api"
	"sandwich/runtime/engine"
	"sandwich/runtime/grammar"
	"sandwich/runtime/tokenizer"
	"sandwich/tuner/measure"
)

// grammarFlags are what bench grammar measures.
type grammarFlags struct {
	schema, model   string
	vocab           int
	answers, tokens int
}

func newBenchGrammar() *cobra.Command {
	var f grammarFlags
	c := &cobra.Command{
		Use:   "grammar",
		Short: "Measure what answers under a JSON Schema cost a token",
		Long: `Measure what answers under a JSON Schema cost a token: making its mask, applying it and sampling, and going on behind
the token that was drawn. Logits are random; each answer is a request of its own, whose masks are made anew.

Without --schema any object, a record, a recursive tree, and a tool set of 200 KB are measured; without --model a made-up
vocabulary of 150,000 tokens is taken. "sample" is what a draw at temperature 1 of the 40 likeliest takes, without a mask and with one.`,
		Example: `  sandwich bench grammar
  sandwich bench grammar --schema tools.json --model llama.gguf --answers 50 --format csv`,
		Args: exactArgs(0, ""),
	}
	fs := c.Flags()
	fs.StringVar(&f.schema, "schema", "", "file with a JSON Schema")
	fs.StringVarP(&f.model, "model", "m", "", "GGUF file whose vocabulary is taken")
	fs.IntVar(&f.vocab, "vocab", 150_000, "tokens of the made-up vocabulary")
	fs.IntVar(&f.answers, "answers", 20, "answers for each schema")
	fs.IntVar(&f.tokens, "tokens", 200, "most tokens of an answer")
	format := formatFlag(c, "table", "json", "csv")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if f.model != "" && c.Flags().Changed("vocab") {
			return usageError(fmt.Errorf("--vocab and --model both name a vocabulary: give one of them"))
		}
		return grammarReport.after(c, *format)(f.run(c.Context()))
	}
	return c
}

func (f *grammarFlags) run(ctx context.Context) ([]measure.GrammarRow, error) {
	for _, n := range []struct {
		flag             string
		value, least, up int
	}{{"vocab", f.vocab, 1000, 1 << 20}, {"answers", f.answers, 1, 10_000}, {"tokens", f.tokens, 1, 1 << 20}} {
		if n.value < n.least || n.value > n.up {
			return nil, usageError(fmt.Errorf("--%s %d: give a number from %d to %d", n.flag, n.value, n.least, n.up))
		}
	}
	schemas := measure.GrammarSchemas()
	if f.schema != "" {
		text, err := os.ReadFile(f.schema)
		if err != nil {
			return nil, usageError(fmt.Errorf("--schema: %w", err))
		}
		schemas = map[string]string{filepath.Base(f.schema): string(text)}
	}
	vocab, err := f.vocabulary()
	if err != nil {
		return nil, usageError(err)
	}
	host, err := profiles.Live()
	if err != nil {
		return nil, err
	}
	vec, err := microkernel.NewVec(host.Features().Best())
	if err != nil {
		return nil, err
	}
	drawer := engine.NewDrawer(vec, vocab.Size(), api.Sampling{Temperature: 1, TopK: 40, Seed: 1})
	var rows []measure.GrammarRow
	step, done := countProgress("bench grammar", len(schemas))
	defer done()
	for _, name := range slices.Sorted(maps.Keys(schemas)) {
		row, err := measure.TimeGrammar(ctx, measure.GrammarOptions{Name: name, Schema: []byte(schemas[name]),
			Vocab: vocab, Answers: f.answers, Tokens: f.tokens, Drawer: drawer})
		if err != nil {
			return nil, usageError(fmt.Errorf("%s: %w", name, err))
		}
		rows = append(rows, row)
		step()
	}
	return rows, nil
}

func (f *grammarFlags) vocabulary() (*grammar.Vocab, error) {
	if f.model == "" {
		return measure.GrammarVocab(f.vocab), nil
	}
	file, name, err := openModel(f.model)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	tok, err := tokenizer.New(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return answer.Vocab(tok), nil
}

var grammarReport = report[measure.GrammarRow]{
	columns: []string{"schema", "bytes", "vocabulary", "tokens", "cut", "compile", "first mask", "mask", "P99", "max",
		"accept", "sample plain", "with mask"},
	numbers: []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12},
	cells: func(r *measure.GrammarRow) []string {
		out := []string{r.Schema, strconv.Itoa(r.Bytes), strconv.Itoa(r.Vocab), strconv.Itoa(r.Tokens),
			strconv.Itoa(r.Cut)}
		for _, s := range []float64{r.Compile, r.First, r.Median, r.P99, r.Max, r.Accept, r.Plain, r.Sample} {
			out = append(out, formatSeconds(s))
		}
		return out
	},
	header: "schema,schema_bytes,vocabulary,answers,tokens,cut,compile_s,first_mask_s,mask_med_s,mask_p99_s,mask_max_s," +
		"accept_med_s,sample_plain_med_s,sample_constrained_med_s",
	line: func(r *measure.GrammarRow) string {
		return fmt.Sprintf("%s,%d,%d,%d,%d,%d,%.9f,%.9f,%.9f,%.9f,%.9f,%.9f,%.9f,%.9f", r.Schema, r.Bytes, r.Vocab,
			r.Answers, r.Tokens, r.Cut, r.Compile, r.First, r.Median, r.P99, r.Max, r.Accept, r.Plain, r.Sample)
	},
}
