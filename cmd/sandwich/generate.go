package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sandwich/cmd/sandwich/internal/show"
	"sandwich/runtime/api"
	"sandwich/runtime/session"
	"sandwich/runtime/textio"
	"sandwich/runtime/tokenizer"
)

// maxPromptBytes bounds a prompt read from standard input.
const maxPromptBytes = 64 << 20

// generateFlags holds the flags of generate in addition to those of the session.
type generateFlags struct {
	session   sessionFlags
	prompt    string
	tokens    string
	ids       bool // --tokens was given
	chat      bool
	count     int
	context   int
	ignoreEOS bool
	stop      []string
	logits    string
	sampling  api.Sampling
}

func newGenerate() *cobra.Command {
	var f generateFlags
	c := &cobra.Command{
		Use:   "generate -p TEXT",
		Short: "Continue a prompt and print the text",
		Long: `Continue a prompt and print what the model adds, as it comes. The prompt is text (-p, or -p - for standard
input), one chat message (--chat), or token ids (--tokens, complete: nothing is added to them).

With --compute f32 --kv f32 the arithmetic is exact; --logits writes, after one line of JSON with the vocabulary and the
number of positions, the logits behind every position of the prompt as little-endian float32.`,
		Example: `  sandwich generate -p "Once upon a time"
  sandwich generate --model llama.gguf --chat -p "Why is the sky blue?" -n 200 --temperature 0.7
  sandwich generate --model llama.gguf --tokens 1,15043,3186 -n 48 --compute f32 --kv f32 --format json
  echo "Dear Sir or Madam," | sandwich generate -p -`,
		Args: exactArgs(0, ""),
	}
	f.session.add(c)
	fs := c.Flags()
	fs.StringVarP(&f.prompt, "prompt", "p", "", "text to continue; - reads standard input")
	fs.StringVar(&f.tokens, "tokens", "", "token ids to continue, such as 1,2,3")
	fs.BoolVar(&f.chat, "chat", false, "take the prompt as a user's message, in the model's chat format")
	fs.IntVarP(&f.count, "predict", "n", 64, "most tokens to generate")
	fs.IntVar(&f.context, "ctx", 0, "most tokens in all (default: what the prompt and -n need)")
	fs.BoolVar(&f.ignoreEOS, "ignore-eos", false, "go on behind an end-of-text token")
	fs.StringArrayVar(&f.stop, "stop", nil, "end before this text; may be given several times")
	fs.StringVar(&f.logits, "logits", "", "write the logits of every prompt position to this file")
	addSampling(c, &f.sampling)
	format := formatFlag(c, "text", "json")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if err := f.check(c); err != nil {
			return usageError(err)
		}
		return f.run(c.Context(), c.InOrStdin(), c.OutOrStdout(), *format)
	}
	return c
}

// addSampling adds the flags of how tokens are drawn.
func addSampling(c *cobra.Command, s *api.Sampling) {
	fs := c.Flags()
	fs.Float32Var(&s.Temperature, "temperature", 0, "0 takes the likeliest token; larger values spread the choice")
	fs.IntVar(&s.TopK, "top-k", 0, "draw from the k likeliest tokens only; 0 is off")
	fs.Float32Var(&s.TopP, "top-p", 1, "draw from the likeliest tokens that make up this probability; 1 is off")
	fs.Float32Var(&s.MinP, "min-p", 0, "leave out tokens less likely than this share of the likeliest; 0 is off")
	fs.Float32Var(&s.RepeatPenalty, "repeat-penalty", 1, "divides the logits of tokens that were generated "+
		"before; 1 is off")
	fs.Uint64Var(&s.Seed, "seed", 1, "seed of the draws")
}

func checkSampling(s api.Sampling) error {
	in := func(v, lo, hi float32) bool { return v >= lo && v <= hi } // false for NaN
	switch {
	case !in(s.Temperature, 0, 100):
		return fmt.Errorf("--temperature %v: give a number from 0 to 100", s.Temperature)
	case s.TopK < 0:
		return fmt.Errorf("--top-k %d: give 0 or more", s.TopK)
	case !in(s.TopP, 0, 1):
		return fmt.Errorf("--top-p %v: give a number from 0 to 1", s.TopP)
	case !in(s.MinP, 0, 1):
		return fmt.Errorf("--min-p %v: give a number from 0 to 1", s.MinP)
	case !in(s.RepeatPenalty, 0.01, 100):
		return fmt.Errorf("--repeat-penalty %v: give a number from 0.01 to 100", s.RepeatPenalty)
	}
	return nil
}

func (f *generateFlags) check(c *cobra.Command) error {
	given := c.Flags().Changed
	f.ids = given("tokens")
	switch {
	case given("prompt") == f.ids:
		return errors.New("give either a prompt with -p TEXT or token ids with --tokens 1,2,3")
	case f.ids && strings.TrimSpace(f.tokens) == "":
		return errors.New("--tokens is empty: give ids such as 1,2,3")
	case f.chat && f.ids:
		return errors.New("--chat needs a message with -p TEXT")
	case f.count < 0 || f.count > maxContext:
		return fmt.Errorf("-n %d: give a number of tokens from 0 to %d", f.count, maxContext)
	case f.context < 0 || f.context > maxContext:
		return fmt.Errorf("--ctx %d: give a number of tokens up to %d", f.context, maxContext)
	}
	return checkSampling(f.sampling)
}

// maxContext limits the context that flags may request, in tokens; memory is checked separately.
const maxContext = 1 << 24

func (f *generateFlags) run(ctx context.Context, in io.Reader, out io.Writer, format string) error {
	began := time.Now()
	s, err := f.session.open()
	if err != nil {
		return err
	}
	defer s.Close()
	prompt, err := f.promptIDs(ctx, s, in)
	if err != nil {
		return usageError(err)
	}
	if err := f.fits(s, len(prompt)); err != nil {
		return usageError(err)
	}
	if f.logits != "" {
		if err := dumpLogits(ctx, s, prompt, f.context, f.logits); err != nil {
			return err
		}
	}
	answer := generated{Prompt: prompt, Tokens: []int32{}}
	if f.count > 0 {
		if err := f.generate(ctx, s, &answer, out, format == "text", began); err != nil {
			return err
		}
	}
	if format == "json" {
		return json.NewEncoder(out).Encode(answer) // on one line: the lists of tokens are long
	}
	return nil
}

// generated is the stable JSON of generate.
type generated struct {
	Prompt  []int32    `json:"prompt_tokens"`
	Tokens  []int32    `json:"tokens"`
	Text    string     `json:"text"`
	Finish  api.Finish `json:"finish_reason,omitempty"`
	Timings timings    `json:"timings"`
}

type timings struct {
	Load        float64 `json:"load_s"`
	FirstToken  float64 `json:"first_token_s"` // from the start of the prompt
	Decode      float64 `json:"decode_s"`      // from the first token to the last
	PromptRate  float64 `json:"prompt_tokens_per_second"`
	DecodeRate  float64 `json:"tokens_per_second"`
	PromptCount int     `json:"prompt_n"`
	DecodeCount int     `json:"decode_n"`
}

func (f *generateFlags) generate(ctx context.Context, s *session.Session, a *generated, out io.Writer, stream bool,
	began time.Time) error {
	e, err := s.Engine(ctx, session.Sizes{Context: len(a.Prompt) + f.count, Positions: f.context, Parallel: 1,
		Queue: 1})
	if err != nil {
		return err
	}
	defer e.Close()
	a.Timings.Load = time.Since(began).Seconds()
	var text strings.Builder
	out = show.Raw(out)
	w := bufio.NewWriter(out)
	req := api.Request{
		Prompt: a.Prompt, MaxTokens: f.count, Sampling: f.sampling, Stop: f.stop, IgnoreEOS: f.ignoreEOS,
	}
	res, err := textio.New(e, s.Tok).Generate(ctx, req, func(t api.Token) error {
		if t.ID != api.NoToken {
			a.Tokens = append(a.Tokens, t.ID)
		}
		text.WriteString(t.Text)
		if !stream {
			return nil
		}
		if s.Tok == nil {
			fmt.Fprintf(w, "%d ", t.ID)
		}
		_, _ = w.WriteString(t.Text) // Flush tells
		return w.Flush()
	})
	if stream && len(a.Tokens) > 0 && !strings.HasSuffix(text.String(), "\n") {
		fmt.Fprintln(out)
	}
	if err != nil {
		return err
	}
	a.Text, a.Finish = text.String(), res.Finish
	a.Timings.set(res)
	if stream && show.Watched() {
		fmt.Fprintf(os.Stderr, "[%d prompt tokens at %.1f/s, %d generated at %.1f/s]\n", res.PromptTokens,
			a.Timings.PromptRate, res.Tokens, a.Timings.DecodeRate)
	}
	return nil
}

func (t *timings) set(r api.Result) {
	t.PromptCount, t.DecodeCount = r.PromptTokens, r.Tokens
	t.FirstToken = r.FirstToken.Seconds()
	t.Decode = (r.Total - r.FirstToken).Seconds()
	if t.FirstToken > 0 {
		t.PromptRate = float64(r.PromptTokens) / t.FirstToken
	}
	if t.Decode > 0 {
		t.DecodeRate = float64(r.Tokens-1) / t.Decode
	}
}

// promptIDs returns the tokens of the prompt.
func (f *generateFlags) promptIDs(ctx context.Context, s *session.Session, in io.Reader) ([]int32, error) {
	if f.ids {
		return parseTokens(f.tokens, s.Shape.Vocab)
	}
	if err := s.CheckTokenizer(); err != nil {
		return nil, usageError(err)
	}
	text := f.prompt
	if text == "-" {
		data, err := io.ReadAll(io.LimitReader(in, maxPromptBytes+1))
		if err != nil {
			return nil, fmt.Errorf("standard input: %w", err)
		}
		if len(data) > maxPromptBytes {
			return nil, fmt.Errorf("standard input has more than %d MiB: no context holds that", maxPromptBytes>>20)
		}
		text = strings.TrimSuffix(string(data), "\n") // which echo and editors add
	}
	if f.chat {
		return s.Tok.ChatIDs(ctx, []api.Message{{Role: "user", Content: text}}, true)
	}
	ids := s.Tok.Encode(nil, text, tokenizer.EncodeOptions{AddSpecial: true, ParseSpecial: true})
	if len(ids) == 0 {
		return nil, errors.New("the prompt is empty: give some text with -p")
	}
	return ids, nil
}

func parseTokens(list string, vocab int) ([]int32, error) {
	var ids []int32
	for word := range strings.SplitSeq(list, ",") {
		id, err := strconv.Atoi(strings.TrimSpace(word))
		if err != nil || id < 0 || id >= vocab {
			return nil, fmt.Errorf("--tokens: %q is not a token of this model: give numbers from 0 to %d, "+
				"separated by commas", show.Clip(word, 20), vocab-1)
		}
		ids = append(ids, int32(id))
	}
	return ids, nil
}

// fits rejects a prompt that leaves no room for output, and warns if the context exceeds the
// training context of the model.
func (f *generateFlags) fits(s *session.Session, prompt int) error {
	if f.context > 0 && prompt >= f.context {
		return fmt.Errorf("the prompt has %d tokens but --ctx is %d: shorten it or raise --ctx", prompt, f.context)
	}
	if f.context > 0 {
		f.count = min(f.count, f.context-prompt)
	}
	if all := prompt + f.count; s.Shape.Context > 0 && all > s.Shape.Context {
		fmt.Fprintf(os.Stderr, "note: %d tokens are more than the %d this model was trained for\n", all,
			s.Shape.Context)
	}
	return nil
}
