package cache

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"sandwich/cmd/sandwich/internal/cli/exit"
	"sandwich/cmd/sandwich/internal/cli/flags"
	"sandwich/cmd/sandwich/internal/cli/modelflags"
	"sandwich/cmd/sandwich/internal/footprint"
	"sandwich/cmd/sandwich/internal/requestfile"
	"sandwich/cmd/sandwich/internal/show"
	"sandwich/runtime/answer"
	"sandwich/runtime/api"
	"sandwich/runtime/prefix"
)

// warmFlags holds the flags of warm.
type warmFlags struct {
	opened
	session  modelflags.Flags
	sizes    modelflags.Service
	endpoint string
	pin      bool
}

func newWarm() *cobra.Command {
	f := warmFlags{session: modelflags.Flags{Wants: modelflags.ForText}}
	c := &cobra.Command{
		Use:   "warm FILE...",
		Short: "Compute prompts and store them for every API key",
		Long: `Compute prompts and store them, so that servers load them. A FILE NAME.json is the body of a request as a client sends it
to --endpoint, such as the first request of an agent with its system prompt and tools; its settings for sampling are not
used. Any other file is a text to continue. Every API key may read what warm stores, so a FILE must not hold secrets.

Model, plan and --ctx must be those of the server, or it cannot use what is stored.`,
		Example: `  sandwich cache warm --model llama.gguf --cache-dir DIR --ctx 32768 --pin agent.json
  sandwich cache warm --model llama.gguf --cache-dir DIR --endpoint /v1/messages agent.json`,
		Args: flags.SomeArgs("files with requests or texts"),
	}
	f.session.Add(c)
	f.Add(c.Flags())
	f.sizes.AddService(c.Flags())
	c.Flags().IntVar(&f.sizes.Context, "ctx", 0, "maximum number of tokens per request, as of serve (default: 4096, "+
		"or the training context of the model if smaller)")
	c.Flags().StringVar(&f.endpoint, "endpoint", "/v1/chat/completions", "endpoint of the server that the .json files "+
		"are requests for")
	c.Flags().BoolVar(&f.pin, "pin", false, "exclude what is stored from eviction")
	c.RunE = func(c *cobra.Command, args []string) error { return f.run(c, args) }
	return c
}

func (f *warmFlags) run(c *cobra.Command, files []string) error {
	if err := f.open(); err != nil {
		return err
	}
	if f.sizes.Context < 0 || f.sizes.Context > modelflags.MaxContext {
		return exit.Usage(fmt.Errorf("--ctx %d is out of range; give a number of tokens up to %d", f.sizes.Context,
			modelflags.MaxContext))
	}
	bodies := make([]requestfile.Request, len(files))
	for i, file := range files {
		var err error
		if bodies[i], err = requestfile.Read(file, f.endpoint); err != nil {
			return exit.Usage(err)
		}
	}
	s, err := f.session.Open()
	if err != nil {
		return err
	}
	defer s.Close()
	if err := s.CheckTokenizer(); err != nil {
		return exit.Usage(err)
	}
	if f.sizes.Context == 0 {
		f.sizes.Context = s.ContextLimit(footprint.DefaultContext)
	}
	f.sizes.Parallel, f.sizes.Queue, f.sizes.Prefixes = 1, 1, f.Store
	e, err := s.Engine(c.Context(), f.sizes.Sizes)
	if err != nil {
		return err
	}
	defer e.Close()
	began := time.Now().Add(-time.Second) // times of files may be rounded
	if e.Prefixes() == nil {
		return exit.Usage(errors.New("this model reads whole texts and has no prefixes to store"))
	}
	for i, b := range bodies {
		w := &warmer{Generator: s.Generator(e, 1)}
		if err := b.Run(c.Context(), w); err != nil {
			return exit.With(exit.Input, fmt.Errorf("%s: %w", files[i], err))
		}
		show.Notice(fmt.Sprintf("%s: %d tokens", files[i], w.prompt))
	}
	if err := e.Prefixes().Flush(c.Context()); err != nil {
		return err
	}
	return f.report(c, began)
}

// report pins what was stored, if asked, and prints it.
func (f *warmFlags) report(c *cobra.Command, began time.Time) error {
	list, err := f.Prefixes()
	if err != nil {
		return err
	}
	for i := range list {
		p := &list[i]
		if !p.Public || p.Used.Before(began) {
			continue
		}
		for j := range p.Objects {
			if f.pin {
				err = errors.Join(err, f.Pin(p.Objects[j].Object.Name, true))
			}
		}
		fmt.Fprintf(c.OutOrStdout(), "%s %d tokens\n", p.Name, len(p.Tokens))
	}
	return err
}

// warmer is a generator that computes prompts for the public salt and generates nothing.
type warmer struct {
	*answer.Generator
	prompt int
}

// Generate computes the prompt of a request.
func (w *warmer) Generate(ctx context.Context, r api.Request, _ func(api.Token) error) (api.Result, error) {
	r.Salt, r.Keep, r.PromptOnly = prefix.Public, true, true
	res, err := w.Generator.Generate(ctx, r, func(api.Token) error { return nil })
	w.prompt = res.PromptTokens
	return res, err
}
