package cachebench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sandwich/cmd/sandwich/internal/cli/exit"
	"sandwich/cmd/sandwich/internal/cli/flags"
	"sandwich/cmd/sandwich/internal/cli/modelflags"
	"sandwich/cmd/sandwich/internal/requestfile"
	"sandwich/cmd/sandwich/internal/show"
	"sandwich/runtime/answer"
	"sandwich/runtime/api"
	"sandwich/runtime/kvcache/disk"
	"sandwich/runtime/session"
)

// replayFlags are the flags of bench cache replay.
type replayFlags struct {
	modelFlags
	context int
}

func newReplay() *cobra.Command {
	var f replayFlags
	c := &cobra.Command{
		Use:   "replay FOLDER...",
		Short: "Replay recorded sessions with a restart in the middle, with and without the store",
		Long: `Compute the prompts of recorded sessions, with a restart after half of the requests, once without a store and once with
one. A FOLDER has the requests of a session in files NNN.request.json, and their endpoints in NNN.endpoint.txt (default:
/v1/responses for requests with input, else /v1/chat/completions), as make agent-sessions records them. Sessions are interleaved.
No answers are generated.`,
		Example: "  sandwich bench cache replay bin/agent-sessions/* --model agent.gguf --ctx 65536",
		Args:    flags.SomeArgs("folders with recorded requests"),
	}
	f.add(c)
	c.Flags().IntVar(&f.context, "ctx", 65536, "maximum number of tokens per request")
	format := flags.Format(c, "table", "json", "csv")
	c.RunE = func(c *cobra.Command, args []string) error {
		return replayReport.After(c, *format)(f.run(c.Context(), args))
	}
	return c
}

// replayRow has the sums of the requests before or after the restart. Its JSON is stable.
type replayRow struct {
	Store    bool    `json:"store"`
	After    bool    `json:"after_restart"`
	Requests int     `json:"requests"`
	Refused  int     `json:"refused"` // requests that do not fit --ctx
	Prompt   int64   `json:"prompt_tokens"`
	Computed int64   `json:"computed_tokens"`
	Loaded   int64   `json:"loaded_tokens"` // from disk
	Seconds  float64 `json:"seconds"`
	Model    string  `json:"model"`
	Plan     string  `json:"plan"`
	KV       string  `json:"kv"`
	CPU      string  `json:"cpu"`
}

func (f *replayFlags) run(ctx context.Context, folders []string) ([]replayRow, error) {
	if err := inRange("ctx", f.context, 128, modelflags.MaxContext); err != nil {
		return nil, err
	}
	requests, err := readSessions(folders)
	if err != nil {
		return nil, exit.Usage(err)
	}
	o, done, err := f.open()
	if err != nil {
		return nil, err
	}
	defer done()
	if err := o.CheckTokenizer(); err != nil {
		return nil, exit.Usage(err)
	}
	step, end := show.StepBar("bench cache replay", 2*len(requests))
	defer end()
	var rows []replayRow
	half := (len(requests) + 1) / 2
	for _, stored := range []bool{false, true} {
		for i, part := range [][]requestfile.Request{requests[:half], requests[half:]} {
			row := replayRow{Store: stored, After: i == 1}
			row.Model, row.Plan, row.KV, row.CPU = o.describe()
			if err := o.replay(ctx, &row, part, f.context, step); err != nil {
				return nil, err
			}
			rows = append(rows, row)
		}
	}
	return rows, nil
}

// replay computes the prompts of requests with a new engine.
func (o *opened) replay(ctx context.Context, row *replayRow, requests []requestfile.Request, tokens int,
	step func()) error {
	sizes := session.Sizes{Context: tokens, Parallel: 1, Queue: 1}
	if row.Store {
		var err error
		if sizes.Prefixes, err = disk.Open(o.dir, disk.Options{WriteRate: -1}); err != nil {
			return err
		}
	}
	e, err := o.Engine(ctx, sizes)
	if err != nil {
		return err
	}
	defer e.Close()
	g := &prompter{o.Generator(e, 1), row}
	for i := range requests {
		refused := g.row.Requests
		err := requests[i].Run(ctx, g)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil && g.row.Requests == refused {
			g.row.Refused++
		}
		step()
	}
	row.Loaded = e.Stats().Scheduler.LoadedTokens
	if row.Store {
		return e.Prefixes().Flush(ctx)
	}
	return nil
}

// prompter computes prompts and generates nothing.
type prompter struct {
	*answer.Generator
	row *replayRow
}

// Generate computes the prompt of a request.
func (p *prompter) Generate(ctx context.Context, r api.Request, _ func(api.Token) error) (api.Result, error) {
	r.PromptOnly = true
	began := time.Now()
	res, err := p.Generator.Generate(ctx, r, func(api.Token) error { return nil })
	if err == nil {
		p.row.Requests++
		p.row.Seconds += time.Since(began).Seconds()
		p.row.Prompt += int64(res.PromptTokens)
		p.row.Computed += int64(res.PromptTokens - res.CachedTokens)
	}
	return res, err
}

// readSessions reads the requests of folders, one of each in rotation.
func readSessions(folders []string) (list []requestfile.Request, err error) {
	sessions := make([][]requestfile.Request, len(folders))
	for i, folder := range folders {
		files, err := filepath.Glob(filepath.Join(folder, "*.request.json"))
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			if info, err := os.Stat(file); err != nil || info.Size() == 0 {
				continue // a request without a body
			}
			r, err := requestfile.Read(file, endpoint(file))
			if err != nil {
				return nil, err
			}
			sessions[i] = append(sessions[i], r)
		}
	}
	for n, more := 0, true; more; n++ {
		more = false
		for _, s := range sessions {
			if n < len(s) {
				list, more = append(list, s[n]), true
			}
		}
	}
	if len(list) < 2 {
		return nil, errors.New("the folders have fewer than two files NNN.request.json; record sessions with " +
			"make agent-sessions")
	}
	return list, nil
}

// endpoint returns the endpoint that a request was sent to.
func endpoint(file string) string {
	text, err := os.ReadFile(strings.TrimSuffix(file, ".request.json") + ".endpoint.txt")
	if path := strings.TrimSpace(string(text)); err == nil && strings.HasPrefix(path, "/") {
		return path
	}
	if body, err := os.ReadFile(file); err == nil && strings.Contains(string(body), `"input"`) &&
		!strings.Contains(string(body), `"messages"`) {
		return "/v1/responses"
	}
	return "/v1/chat/completions"
}

var replayReport = show.Report[replayRow]{
	Title: func(r *replayRow) string {
		return fmt.Sprintf("%s on %s, KV cache %s: prompts of recorded sessions, no answers", r.Model, r.CPU, r.KV)
	},
	Columns: []string{"store", "requests", "number", "refused", "prompt tokens", "computed", "loaded", "time"},
	Numbers: []int{2, 3, 4, 5, 6, 7},
	Cells: func(r *replayRow) []string {
		store, when := "no", "before the restart"
		if r.Store {
			store = "yes"
		}
		if r.After {
			when = "after the restart"
		}
		return []string{store, when, fmt.Sprint(r.Requests), fmt.Sprint(r.Refused), fmt.Sprint(r.Prompt),
			fmt.Sprint(r.Computed), fmt.Sprint(r.Loaded), seconds(r.Seconds)}
	},
	Header: "model,kv,plan,store,after_restart,requests,refused,prompt_tokens,computed_tokens,loaded_tokens,seconds",
	Line: func(r *replayRow) string {
		return fmt.Sprintf("%s,%s,%s,%v,%v,%d,%d,%d,%d,%d,%.3f", show.CSVCell(r.Model), r.KV, show.CSVCell(r.Plan),
			r.Store, r.After, r.Requests, r.Refused, r.Prompt, r.Computed, r.Loaded, r.Seconds)
	},
}
