package bench

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sandwich/cmd/sandwich/internal/cli/exit"
	"sandwich/cmd/sandwich/internal/cli/flags"
	"sandwich/cmd/sandwich/internal/cli/modelflags"
	"sandwich/cmd/sandwich/internal/show"
	"sandwich/profiles/retention"
	"sandwich/runtime/engine"
	"sandwich/runtime/engine/forward"
	"sandwich/runtime/pool"
	"sandwich/runtime/session"
	"sandwich/runtime/tokenizer"
	"sandwich/tuner/measure"
)

// maxTextBytes bounds the text of a perplexity run.
const maxTextBytes = 128 << 20

func newBenchPerplexity() *cobra.Command {
	var f modelflags.Flags
	var window int
	c := &cobra.Command{
		Use:   "perplexity FILE",
		Short: "Measure the perplexity of a model on a text",
		Long: `Compute the perplexity of a model on a text, as llama-perplexity does: the text (without its final newline) is tokenized
as a whole and cut into windows of --ctx tokens; an incomplete last window is dropped. Each window starts from an empty
cache with the token that begins a text, and its second half is scored. The result is the exponential of the mean
negative log-likelihood.`,
		Example: "  sandwich bench perplexity book.txt\n  sandwich bench perplexity wiki.txt --model llama.gguf " +
			"--ctx 512 --format json",
		Args: flags.ExactArgs(1, "a text file"),
	}
	f.Add(c)
	c.Flags().IntVar(&window, "ctx", 256, "window length in tokens")
	format := flags.Format(c, "table", "json", "csv")
	c.RunE = func(c *cobra.Command, args []string) error {
		if window < 4 || window > 1<<20 {
			return exit.Usage(fmt.Errorf("--ctx %d is out of range; give a number of tokens from 4 to %d", window,
				1<<20))
		}
		text, err := readText(args[0])
		if err != nil {
			return exit.Usage(err)
		}
		s, err := f.Open()
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
		return "", fmt.Errorf("%s has more than %d MiB; shorten it: a few hundred KB are enough", path,
			maxTextBytes>>20)
	}
	return strings.TrimSuffix(string(data), "\n"), nil
}

// perplexity scores the second half of each window of a text.
func perplexity(ctx context.Context, s *session.Session, text string, window int) (score *measure.Score, err error) {
	if err := s.CheckTokenizer(); err != nil {
		return nil, exit.Usage(err)
	}
	ids := s.Tok.Encode(nil, text, tokenizer.EncodeOptions{AddSpecial: true})
	if len(ids) < window {
		return nil, exit.Usage(fmt.Errorf("the text has %d tokens, less than one window of %d; give a longer "+
			"text or a smaller --ctx", len(ids), window))
	}
	o := measure.ScoreOptions{Window: window, Start: -1, Chunk: s.Plan.Chunk, Rows: min(modelflags.LogitRows,
		s.Plan.Chunk)}
	if bos, ok := s.Tok.BOS(); ok {
		o.Start = bos
	}
	step, done := show.StepBar("perplexity", len(ids)/window)
	defer done()
	o.Step = step
	began := time.Now()
	err = s.WithRunner(ctx, window, 0, o.Rows, func(r *forward.Runner, l *pool.Leader) (err error) {
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
