package drafts

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"sandwich/cmd/sandwich/internal/cli/exit"
	"sandwich/cmd/sandwich/internal/cli/flags"
	"sandwich/cmd/sandwich/internal/cli/modelflags"
	"sandwich/profiles/retention"
	"sandwich/runtime/session"
	"sandwich/runtime/speculate"
	"sandwich/runtime/tokenizer"
	"sandwich/tuner/measure/drafts"
)

// maxTextBytes bounds the text of bench speculate.
const maxTextBytes = 8 << 20

// speculateFlags holds the flags of bench speculate.
type speculateFlags struct {
	session              modelflags.Flags
	prompt, answer, reps int
	copied               float64
	length               int // of copied runs
	text                 string
	textExists           bool
}

// New returns the verb bench speculate.
func New() *cobra.Command {
	var f speculateFlags
	c := &cobra.Command{
		Use:   "speculate [TEXT]",
		Short: "Measure speculative decoding by prompt lookup on a text",
		Long: `Measure generation with and without prompt lookup, interleaved, for an answer whose tokens are forced, so that the
acceptance is that of the text with any weights. The first half of the tokens of the file TEXT is the prompt, or --prompt
tokens, and the rest is the answer. Without TEXT the tokens are random, and a share of the answer (--copied) is copied
from the prompt in runs of --run tokens.`,
		Example: `  sandwich bench speculate --model llama.gguf
  sandwich bench speculate main.go --model llama.gguf --prompt 2000 --format json`,
		Args: flags.AtMostArgs(1),
	}
	f.session.Add(c)
	fs := c.Flags()
	fs.IntVar(&f.prompt, "prompt", 0, "tokens of the prompt (default: half of TEXT, or 512 random ones)")
	fs.IntVarP(&f.answer, "tg", "n", 256, "maximum number of tokens of the answer")
	fs.Float64Var(&f.copied, "copied", 0.6, "without TEXT: share of the answer that is copied from the prompt")
	fs.IntVar(&f.length, "run", 20, "without TEXT: length of a copied run in tokens")
	fs.IntVarP(&f.reps, "reps", "r", 5, "samples per test")
	format := flags.Format(c, "table", "json", "csv")
	c.RunE = func(c *cobra.Command, args []string) error {
		if len(args) > 0 {
			f.text, f.textExists = args[0], true
		}
		if err := f.check(); err != nil {
			return exit.Usage(err)
		}
		return Report.After(c, *format)(f.run(c.Context()))
	}
	return c
}

func (f *speculateFlags) check() error {
	for _, n := range []struct {
		flag           string
		value, min, up int
	}{{"prompt", f.prompt, 0, 1 << 20}, {"tg", f.answer, 2, 1 << 20}, {"run", f.length, 1, 1 << 20},
		{"reps", f.reps, 1, 10_000}} {
		if n.value < n.min || n.value > n.up {
			return fmt.Errorf("--%s %d is out of range; give a number from %d to %d", n.flag, n.value, n.min, n.up)
		}
	}
	if !(f.copied >= 0 && f.copied <= 1) {
		return fmt.Errorf("--copied %g is out of range; give a share from 0 to 1", f.copied)
	}
	return nil
}

func (f *speculateFlags) run(ctx context.Context) ([]drafts.Row, error) {
	s, err := f.session.Open()
	if err != nil {
		return nil, err
	}
	defer s.Close()
	request, err := f.request(s)
	if err != nil {
		return nil, exit.Usage(err)
	}
	d, _, err := speculate.New(speculate.Auto)
	if err != nil {
		return nil, err
	}
	row, err := run(ctx, s, d, &drafts.Options{Requests: []drafts.Request{request}, Reps: f.reps})
	if err != nil {
		return nil, err
	}
	if row.Test = f.text; !f.textExists {
		row.Test = fmt.Sprintf("tg%d, %.0f %% copied", len(request.Answer), 100*f.copied)
	}
	return []drafts.Row{*row}, nil
}

// request returns the prompt and the answer: of the text, or random ones.
func (f *speculateFlags) request(s *session.Session) (r drafts.Request, err error) {
	if !f.textExists {
		prompt := f.prompt
		if prompt == 0 {
			prompt = 512
		}
		var excluded func(id int32) bool
		if s.Tok != nil {
			excluded = s.Tok.IsEOG // it would end the answer
		}
		return drafts.Copied(prompt, f.answer, f.length, f.copied, s.Shape.Vocab, excluded, 1), nil
	}
	if err := s.CheckTokenizer(); err != nil {
		return r, err
	}
	file, err := retention.OpenRegular(f.text)
	if err != nil {
		return r, err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxTextBytes+1))
	if err != nil {
		return r, err
	}
	if len(text) > maxTextBytes {
		return r, fmt.Errorf("%s has more than %d MiB; shorten it", f.text, maxTextBytes>>20)
	}
	ids := s.Tok.Encode(nil, string(text), tokenizer.EncodeOptions{AddSpecial: true})
	prompt := f.prompt
	if prompt == 0 {
		prompt = len(ids) / 2
	}
	if prompt < 1 || len(ids) < prompt+2 {
		return r, fmt.Errorf("%s has %d tokens; give a text with at least 2 tokens after a prompt of %d", f.text,
			len(ids), max(1, prompt))
	}
	r = drafts.Request{Prompt: ids[:prompt], Answer: ids[prompt:min(len(ids), prompt+f.answer)]}
	r.Tokens = len(r.Answer)
	return r, nil
}
