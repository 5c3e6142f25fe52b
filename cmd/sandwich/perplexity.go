package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sandwich/cmd/sandwich/internal/show"
	"sandwich/profiles/retention"
	"sandwich/runtime/engine"
	"sandwich/runtime/pool"
	"sandwich/runtime/session"
	"sandwich/runtime/tokenizer"
	"sandwich/tuner/measure"
)

// maxTextBytes bounds the text of a perplexity run.
const maxTextBytes = 128 << 20

func newBenchPerplexity() *cobra.Command {
	var f sessionFlags
	var window int
	c := &cobra.Command{
		Use:   "perplexity FILE",
		Short: "Estimate how well a model predicts a text",
		Long: `Compute the perplexity of a model on a text, as llama-perplexity does: the text (without the newline that ends it) is
tokenized as a whole and cut into windows of --ctx tokens, an incomplete last one being dropped. Each window starts
with the token that starts a text and from an empty cache; the second half of it is scored. The answer is the
exponential of the mean negative log-likelihood.`,
		Example: "  sandwich bench perplexity book.txt\n  sandwich bench perplexity wiki.txt --model llama.gguf " +
			"--ctx 512 --format json",
		Args: exactArgs(1, "a text file"),
	}
	f.add(c)
	c.Flags().IntVar(&window, "ctx", 256, "tokens of a window")
	format := formatFlag(c, "table", "json", "csv")
	c.RunE = func(c *cobra.Command, args []string) error {
		if window < 4 || window > 1<<20 {
			return usageError(fmt.Errorf("--ctx %d: give a number of tokens from 4 to %d", window, 1<<20))
		}
		text, err := readText(args[0])
		if err != nil {
			return usageError(err)
		}
		s, err := f.open()
		if err != nil {
			return err
		}
		defer s.Close()
		score, err := perplexity(c.Context(), s, text, window)
		if err != nil {
			return err
		}
		return printScore(c.OutOrStdout(), score, *format)
	}
	return c
}

func readText(path string) (string, error) {
	f, err := retention.OpenRegular(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxTextBytes+1))
	if err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	if len(data) > maxTextBytes {
		return "", fmt.Errorf("%s has more than %d MiB: cut it, some hundred KB are enough", path, maxTextBytes>>20)
	}
	return strings.TrimSuffix(string(data), "\n"), nil
}

// perplexity scores the second half of each window of a text.
func perplexity(ctx context.Context, s *session.Session, text string, window int) (score *measure.Score, err error) {
	if err := s.CheckTokenizer(); err != nil {
		return nil, usageError(err)
	}
	ids := s.Tok.Encode(nil, text, tokenizer.EncodeOptions{AddSpecial: true})
	if len(ids) < window {
		return nil, usageError(fmt.Errorf("the text has %d tokens, less than one window of %d: take a longer "+
			"text or a smaller --ctx", len(ids), window))
	}
	o := measure.ScoreOptions{Window: window, Start: -1, Chunk: s.Plan.Chunk, Rows: min(logitRows, s.Plan.Chunk)}
	if bos, ok := s.Tok.BOS(); ok {
		o.Start = bos
	}
	step, done := show.StepBar("perplexity", len(ids)/window)
	defer done()
	o.Step = step
	began := time.Now()
	err = s.WithRunner(ctx, window, 0, o.Rows, func(r *engine.Runner, l *pool.Leader) (err error) {
		score, err = measure.ScoreText(ctx, engine.NewSequence(r, l), ids, o)
		return err
	})
	if err == nil {
		score.Model = s.Name
		score.Rate = float64(score.Windows*window) / time.Since(began).Seconds()
	}
	return score, err
}

func printScore(w io.Writer, o *measure.Score, format string) error {
	switch format {
	case "json":
		return show.JSON(w, o)
	case "csv":
		_, err := fmt.Fprintf(w,
			"model,ctx,windows,tokens,nll,nll_error,perplexity,tokens_per_second\n%s,%d,%d,%d,%.6f,%.6f,%.6f,%.1f\n",
			show.CSVCell(o.Model), o.Window, o.Windows, o.Tokens, o.NLL, o.Error, o.Perplexity, o.Rate)
		return err
	}
	_, err := fmt.Fprintf(w, "%s: perplexity %.4f ± %.4f\n%d tokens scored in %d windows of %d, negative "+
		"log-likelihood %.5f; %.0f tokens/s\n",
		o.Model, o.Perplexity, o.Perplexity*o.Error, o.Tokens, o.Windows, o.Window, o.NLL, o.Rate)
	return err
}
