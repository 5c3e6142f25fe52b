package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sandwich/profiles"
	"sandwich/runtime/engine"
	"sandwich/runtime/pool"
	"sandwich/runtime/tokenizer"
)

// maxTextBytes bounds the text of a perplexity run.
const maxTextBytes = 128 << 20

func newBenchPerplexity() *cobra.Command {
	var f sessionFlags
	var window int
	c := &cobra.Command{
		Use:   "perplexity FILE",
		Short: "Reckon how well a model predicts a text",
		Long: `Reckon the perplexity of a model on a text, as llama-perplexity does: the text (without the newline that ends it) is
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
		return score.print(c.OutOrStdout(), *format)
	}
	return c
}

func readText(path string) (string, error) {
	f, err := profiles.OpenRegular(path)
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

// score is the stable JSON of bench perplexity.
type score struct {
	Model      string  `json:"model"`
	Window     int     `json:"ctx"`
	Windows    int     `json:"windows"`
	Tokens     int     `json:"tokens"` // scored
	NLL        float64 `json:"nll"`    // mean negative log-likelihood of them
	Error      float64 `json:"nll_error"`
	Perplexity float64 `json:"perplexity"`
	Rate       float64 `json:"tokens_per_second"` // evaluated, not only scored
	sum, sum2  float64
}

// perplexity scores the second half of each window of a text.
func perplexity(ctx context.Context, s *session, text string, window int) (*score, error) {
	if err := s.needTokenizer(); err != nil {
		return nil, err
	}
	ids := s.tok.Encode(nil, text, tokenizer.EncodeOptions{AddSpecial: true})
	out := &score{Model: s.name, Window: window, Windows: len(ids) / window}
	if out.Windows == 0 {
		return nil, usageError(fmt.Errorf("the text has %d tokens, less than one window of %d: take a longer "+
			"text or a smaller --ctx", len(ids), window))
	}
	bos, hasBOS := s.tok.BOS()
	rows := min(logitRows, s.plan.Chunk)
	step, done := countProgress("perplexity", out.Windows)
	defer done()
	began := time.Now()
	err := s.withRunner(ctx, window, rows, func(r *engine.Runner, l *pool.Leader) error {
		line := engine.NewLine(r, l)
		for w := range out.Windows {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			part := ids[w*window : (w+1)*window]
			if hasBOS {
				part[0] = bos
			}
			if err := out.add(ctx, line, part, s.plan.Chunk, rows); err != nil {
				return err
			}
			step()
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	out.finish(time.Since(began))
	return out, nil
}

// add scores the ids behind the middle of a window, each from the logits one position before.
func (o *score) add(ctx context.Context, line *engine.Line, ids []int32, chunk, rows int) error {
	first := len(ids) / 2
	line.Reset()
	if err := line.Feed(ids[:first], chunk, engine.NoLogits, nil); err != nil {
		return err
	}
	return line.Feed(ids[first:len(ids)-1], rows, engine.AllLogits, func(pos int, logits []float32) error {
		nll := negativeLogLikelihood(logits, ids[pos+1])
		if ctx.Err() != nil {
			return ctx.Err()
		}
		o.Tokens++
		o.sum += nll
		o.sum2 += nll * nll
		return nil
	})
}

// negativeLogLikelihood is -log softmax(logits)[id].
func negativeLogLikelihood(logits []float32, id int32) float64 {
	best := float64(math.Inf(-1))
	for _, v := range logits {
		best = max(best, float64(v))
	}
	sum := 0.0
	for _, v := range logits {
		sum += math.Exp(float64(v) - best)
	}
	return best + math.Log(sum) - float64(logits[id])
}

func (o *score) finish(took time.Duration) {
	n := float64(o.Tokens)
	o.NLL = o.sum / n
	o.Perplexity = math.Exp(o.NLL)
	if o.Tokens > 1 {
		o.Error = math.Sqrt(max(0, o.sum2/n-o.NLL*o.NLL) / (n - 1))
	}
	o.Rate = float64(o.Windows*o.Window) / took.Seconds()
}

func (o *score) print(w io.Writer, format string) error {
	switch format {
	case "json":
		return printJSON(w, o)
	case "csv":
		_, err := fmt.Fprintf(w,
			"model,ctx,windows,tokens,nll,nll_error,perplexity,tokens_per_second\n%s,%d,%d,%d,%.6f,%.6f,%.6f,%.1f\n",
			csvCell(o.Model), o.Window, o.Windows, o.Tokens, o.NLL, o.Error, o.Perplexity, o.Rate)
		return err
	}
	_, err := fmt.Fprintf(w, "%s: perplexity %.4f ± %.4f\n%d tokens scored in %d windows of %d, negative "+
		"log-likelihood %.5f; %.0f tokens/s\n",
		o.Model, o.Perplexity, o.Perplexity*o.Error, o.Tokens, o.Windows, o.Window, o.NLL, o.Rate)
	return err
}
