package serve

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

	"sandwich/cmd/sandwich/internal/cli/exit"
	"sandwich/cmd/sandwich/internal/cli/flags"
	"sandwich/cmd/sandwich/internal/cli/modelflags"
	"sandwich/cmd/sandwich/internal/show"
	"sandwich/runtime/api"
	"sandwich/runtime/engine/drafting"
	"sandwich/runtime/session"
	"sandwich/runtime/textio"
	"sandwich/runtime/tokenizer"
)

// maxPromptBytes bounds a prompt read from standard input.
const maxPromptBytes = 64 << 20

// generateFlags holds the flags of generate.
type generateFlags struct {
	session   modelflags.Flags
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
	drafts    drafting.Options
}

// NewGenerate returns the command "sandwich generate".
func NewGenerate() *cobra.Command {
	var f generateFlags
	c := &cobra.Command{
		Use:   "generate -p TEXT",
		Short: "Continue a prompt and print the text",
		Long: `Continue a prompt and print the generated text as it arrives. The prompt is text (-p; -p - reads standard input), one chat
message (--chat), or token ids (--tokens, to which nothing is added).

With --compute f32 --kv f32 the arithmetic is exact. --logits writes one line of JSON with the size of the vocabulary and
the number of positions, then the logits after each position of the prompt as little-endian float32.`,
		Example: `  sandwich generate -p "Once upon a time"
  sandwich generate --model llama.gguf --chat -p "Why is the sky blue?" -n 200 --temperature 0.7
  sandwich generate --model llama.gguf --tokens 1,15043,3186 -n 48 --compute f32 --kv f32 --format json
  sandwich generate --model llama.gguf --device none -v -p "Once upon a time"
  echo "Dear Sir or Madam," | sandwich generate -p -`,
		Args: flags.ExactArgs(0, ""),
	}
	f.session.Add(c)
	f.session.AddDevice(c)
	f.session.AddDeviceDispatch(c)
	modelflags.AddVerbose(c)
	fs := c.Flags()
	fs.StringVarP(&f.prompt, "prompt", "p", "", "text to continue; - reads standard input")
	fs.StringVar(&f.tokens, "tokens", "", "token ids to continue, such as 1,2,3")
	fs.BoolVar(&f.chat, "chat", false, "format the prompt as a user message by the model's chat template")
	fs.IntVarP(&f.count, "predict", "n", 64, "maximum number of tokens to generate")
	fs.IntVar(&f.context, "ctx", 0, "maximum number of tokens of prompt and output (default: what the prompt and -n "+
		"need)")
	fs.BoolVar(&f.ignoreEOS, "ignore-eos", false, "continue after an end-of-text token")
	fs.StringArrayVar(&f.stop, "stop", nil, "stop before this text; may be repeated")
	fs.StringVar(&f.logits, "logits", "", "write the logits of every prompt position to this file")
	addSampling(c, &f.sampling)
	modelflags.AddSpeculate(fs, &f.drafts)
	format := flags.Format(c, "text", "json")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if err := f.check(c); err != nil {
			return exit.Usage(err)
		}
		return f.run(c.Context(), c.InOrStdin(), c.OutOrStdout(), *format)
	}
	return c
}

// addSampling adds the sampling flags.
func addSampling(c *cobra.Command, s *api.Sampling) {
	fs := c.Flags()
	fs.Float32Var(&s.Temperature, "temperature", 0, "sampling temperature; 0 takes the most likely token")
	fs.IntVar(&s.TopK, "top-k", 0, "sample from the k most likely tokens; 0 disables the limit")
	fs.Float32Var(&s.TopP, "top-p", 1, "sample from the most likely tokens with this total probability; 1 disables "+
		"the limit")
	fs.Float32Var(&s.MinP, "min-p", 0, "exclude tokens less likely than this fraction of the most likely one; 0 "+
		"disables the limit")
	fs.Float32Var(&s.RepeatPenalty, "repeat-penalty", 1, "divisor of the logits of tokens that were generated "+
		"before; 1 disables it")
	fs.Uint64Var(&s.Seed, "seed", 1, "seed of the sampling")
}

func checkSampling(s api.Sampling) error {
	in := func(v, lo, hi float32) bool { return v >= lo && v <= hi } // false for NaN
	switch {
	case !in(s.Temperature, 0, 100):
		return fmt.Errorf("--temperature %v is out of range; give a number from 0 to 100", s.Temperature)
	case s.TopK < 0:
		return fmt.Errorf("--top-k %d is negative; give 0 or more", s.TopK)
	case !in(s.TopP, 0, 1):
		return fmt.Errorf("--top-p %v is out of range; give a number from 0 to 1", s.TopP)
	case !in(s.MinP, 0, 1):
		return fmt.Errorf("--min-p %v is out of range; give a number from 0 to 1", s.MinP)
	case !in(s.RepeatPenalty, 0.01, 100):
		return fmt.Errorf("--repeat-penalty %v is out of range; give a number from 0.01 to 100", s.RepeatPenalty)
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
		return errors.New("--tokens is empty; give ids such as 1,2,3")
	case f.chat && f.ids:
		return errors.New("--chat needs a message with -p TEXT")
	case f.count < 0 || f.count > modelflags.MaxContext:
		return fmt.Errorf("-n %d is out of range; give a number of tokens from 0 to %d", f.count, modelflags.MaxContext)
	case f.context < 0 || f.context > modelflags.MaxContext:
		return fmt.Errorf("--ctx %d is out of range; give a number of tokens up to %d", f.context,
			modelflags.MaxContext)
	}
	return checkSampling(f.sampling)
}

func (f *generateFlags) run(ctx context.Context, in io.Reader, out io.Writer, format string) error {
	began := time.Now()
	s, err := f.session.Open()
	if err != nil {
		return err
	}
	defer s.Close()
	prompt, err := f.promptIDs(ctx, s, in)
	if err != nil {
		return exit.Usage(err)
	}
	if err := f.fits(s, len(prompt)); err != nil {
		return exit.Usage(err)
	}
	if f.logits != "" {
		if err := dumpLogits(ctx, s, prompt, f.context, f.logits); err != nil {
			return err
		}
	}
	answer := Generated{Prompt: prompt, Tokens: []int32{}}
	if f.count > 0 {
		if err := f.generate(ctx, s, &answer, out, format == "text", began); err != nil {
			return err
		}
	}
	if format == "json" {
		return json.NewEncoder(out).Encode(answer) // on one line, since the lists of tokens are long
	}
	return nil
}

// Generated is the stable JSON of generate.
type Generated struct {
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
	Drafted     int     `json:"drafted_n"`  // tokens that were drafted and verified
	Accepted    int     `json:"accepted_n"` // of them, tokens of the answer
}

func (f *generateFlags) generate(ctx context.Context, s *session.Session, a *Generated, out io.Writer, stream bool,
	began time.Time) error {
	e, err := s.Engine(ctx, session.Sizes{Context: len(a.Prompt) + f.count, Positions: f.context, Parallel: 1,
		Queue: 1, Speculation: f.drafts})
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
		_, _ = w.WriteString(t.Text) // Flush returns the error
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
	t.Drafted, t.Accepted = r.DraftedTokens, r.AcceptedTokens
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
		return nil, exit.Usage(err)
	}
	text := f.prompt
	if text == "-" {
		data, err := io.ReadAll(io.LimitReader(in, maxPromptBytes+1))
		if err != nil {
			return nil, fmt.Errorf("standard input: %w", err)
		}
		if len(data) > maxPromptBytes {
			return nil, fmt.Errorf("standard input has more than %d MiB; give a shorter prompt", maxPromptBytes>>20)
		}
		text = strings.TrimSuffix(string(data), "\n") // echo and editors add it
	}
	if f.chat {
		return s.Tok.ChatIDs(ctx, []api.Message{{Role: "user", Content: text}}, true)
	}
	ids := s.Tok.Encode(nil, text, tokenizer.EncodeOptions{AddSpecial: true, ParseSpecial: true})
	if len(ids) == 0 {
		return nil, errors.New("the prompt is empty; give text with -p")
	}
	return ids, nil
}

// parseTokens parses a comma-separated list of token ids below vocab.
func parseTokens(list string, vocab int) ([]int32, error) {
	var ids []int32
	for word := range strings.SplitSeq(list, ",") {
		id, err := strconv.Atoi(strings.TrimSpace(word))
		if err != nil || id < 0 || id >= vocab {
			return nil, fmt.Errorf("--tokens: %q is not a token of this model; give numbers from 0 to %d, "+
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
		return fmt.Errorf("the prompt has %d tokens but --ctx is %d; shorten it or raise --ctx", prompt, f.context)
	}
	if f.context > 0 {
		f.count = min(f.count, f.context-prompt)
	}
	if all := prompt + f.count; s.Shape.Context > 0 && all > s.Shape.Context {
		fmt.Fprintf(os.Stderr, "note: %d tokens exceed the training context of this model, %d\n", all,
			s.Shape.Context)
	}
	return nil
}
