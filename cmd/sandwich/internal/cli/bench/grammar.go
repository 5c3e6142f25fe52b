package bench

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"sandwich/cmd/sandwich/internal/cli/exit"
	"sandwich/cmd/sandwich/internal/cli/flags"
	"sandwich/cmd/sandwich/internal/cli/machine"
	"sandwich/cmd/sandwich/internal/cli/modelref"
	"sandwich/cmd/sandwich/internal/show"
	"sandwich/microkernel"
	"sandwich/profiles"
	"sandwich/runtime/answer"
	"sandwich/runtime/api"
	"sandwich/runtime/engine/sampling"
	"sandwich/runtime/grammar"
	"sandwich/runtime/session"
	"sandwich/runtime/tokenizer"
	"sandwich/tuner/measure"
)

// grammarFlags holds the flags of bench grammar.
type grammarFlags struct {
	schema, model   string
	vocab           []int
	answers, tokens int
}

func newBenchGrammar() *cobra.Command {
	var f grammarFlags
	c := &cobra.Command{
		Use:   "grammar",
		Short: "Measure the cost per token of answers under a JSON Schema",
		Long: `Measure the cost per token of answers under a grammar: computing the token mask, applying it and sampling, and advancing
past the sampled token. Logits are random. Each answer is a separate request that computes its masks anew. "first mask"
includes the work before the first forward. Times are CPU time of one thread.

Without --schema a built-in set is measured: any object, a record, a recursive tree, formats and patterns, strings of
several patterns at once, strings that must not match ("refused"), passwords with four look-aheads, patterns with length
limits, multiples of 4093, a form of 60 properties, an enum of 10,000 values, a tool set of 200 KB, and free text before
a tool call. Without --model the vocabularies are synthetic. "again" is the 99th percentile for a mask that is cached;
"sample" is the time to sample at temperature 1 from the 40 most likely tokens, without a mask and with one.`,
		Example: `  sandwich bench grammar
  sandwich bench grammar --schema tools.json --model llama.gguf --answers 50 --format csv`,
		Args: flags.ExactArgs(0, ""),
	}
	fs := c.Flags()
	fs.StringVar(&f.schema, "schema", "", "file with a JSON Schema")
	modelref.Flag(c, &f.model, "model", "m", "", "GGUF file or pulled model whose vocabulary to use")
	fs.IntSliceVar(&f.vocab, "vocab", []int{32_000, 150_000}, "sizes of the synthetic vocabularies in tokens")
	fs.IntVar(&f.answers, "answers", 20, "answers per schema")
	fs.IntVar(&f.tokens, "tokens", 200, "maximum number of tokens of an answer")
	format := flags.Format(c, "table", "json", "csv")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if f.model != "" && c.Flags().Changed("vocab") {
			return exit.Usage(errors.New("--vocab and --model both set the vocabulary; give one of them"))
		}
		return grammarReport.After(c, *format)(f.run(c.Context()))
	}
	return c
}

func (f *grammarFlags) run(ctx context.Context) ([]measure.GrammarRow, error) {
	type limit struct {
		flag           string
		value, min, up int
	}
	limits := []limit{{"answers", f.answers, 1, 10_000}, {"tokens", f.tokens, 1, 1 << 20}}
	for _, n := range f.vocab {
		limits = append(limits, limit{"vocab", n, 1000, 1 << 20})
	}
	for _, n := range limits {
		if n.value < n.min || n.value > n.up {
			return nil, exit.Usage(fmt.Errorf("--%s %d is out of range; give a number from %d to %d", n.flag, n.value,
				n.min, n.up))
		}
	}
	sources := measure.GrammarSources()
	if f.schema != "" {
		text, err := os.ReadFile(f.schema)
		if err != nil {
			return nil, exit.Usage(fmt.Errorf("--schema: %w", err))
		}
		if _, err := grammar.FromSchema(text); err != nil { // before vocabularies are made
			return nil, exit.Usage(fmt.Errorf("%s: %w", filepath.Base(f.schema), err))
		}
		sources = map[string]measure.GrammarSource{filepath.Base(f.schema): measure.GrammarOfSchema(string(text))}
	}
	vocabs, err := f.vocabularies()
	if err != nil {
		return nil, exit.Usage(err)
	}
	host, err := machine.Live()
	if err != nil {
		return nil, err
	}
	vec, err := microkernel.NewVec(host.Features().Best())
	if err != nil {
		return nil, err
	}
	var rows []measure.GrammarRow
	step, done := show.StepBar("bench grammar", len(sources)*len(vocabs))
	defer done()
	for _, vocab := range vocabs {
		sampler := sampling.New(api.Sampling{Temperature: 1, TopK: 40, Seed: 1}, nil)
		buffer := sampling.NewBuffer(vec, vocab.Size())
		draw := func(logits []float32, allowed []uint64) int32 { return sampler.Next(logits, allowed, buffer) }
		for _, name := range slices.Sorted(maps.Keys(sources)) {
			row, err := measure.TimeGrammar(ctx, measure.GrammarOptions{Name: name, Source: sources[name],
				Vocab: vocab, Answers: f.answers, Tokens: f.tokens, Draw: draw})
			if err != nil {
				return nil, exit.Usage(fmt.Errorf("%s: %w", name, err))
			}
			rows = append(rows, row)
			step()
		}
	}
	return rows, nil
}

func (f *grammarFlags) vocabularies() (out []*grammar.Vocab, err error) {
	if f.model == "" {
		for _, n := range f.vocab {
			out = append(out, measure.GrammarVocab(n))
		}
		return out, nil
	}
	file, name, err := session.OpenModel(f.model)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	tok, err := tokenizer.New(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return []*grammar.Vocab{answer.Vocab(tok)}, nil
}

var grammarReport = show.Report[measure.GrammarRow]{
	Columns: []string{"schema", "bytes", "vocabulary", "tokens", "cut", "compile", "first mask", "mean", "mask", "P99",
		"max", "again", "memory", "accept", "sample plain", "with mask"},
	Numbers: []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
	Cells: func(r *measure.GrammarRow) []string {
		out := []string{r.Schema, strconv.Itoa(r.Bytes), strconv.Itoa(r.Vocab), strconv.Itoa(r.Tokens),
			strconv.Itoa(r.Cut)}
		for _, s := range []float64{r.Compile, r.First, r.Mean, r.Median, r.P99, r.Max, r.Again} {
			out = append(out, profiles.FormatSeconds(s))
		}
		out = append(out, show.Size(r.Memory))
		for _, s := range []float64{r.Accept, r.Plain, r.Sample} {
			out = append(out, profiles.FormatSeconds(s))
		}
		return out
	},
	Header: "schema,schema_bytes,vocabulary,answers,tokens,cut,compile_s,first_mask_s,mask_mean_s,mask_med_s," +
		"mask_p99_s,mask_max_s,mask_again_p99_s,memory_bytes,accept_med_s,sample_plain_med_s,sample_constrained_med_s",
	Line: func(r *measure.GrammarRow) string {
		return fmt.Sprintf("%s,%d,%d,%d,%d,%d,%.9f,%.9f,%.9f,%.9f,%.9f,%.9f,%.9f,%d,%.9f,%.9f,%.9f",
			show.CSVCell(r.Schema), r.Bytes, r.Vocab, r.Answers, r.Tokens, r.Cut, r.Compile, r.First, r.Mean,
			r.Median, r.P99, r.Max, r.Again, r.Memory, r.Accept, r.Plain, r.Sample)
	},
}
