package cachebench

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"sandwich/cmd/sandwich/internal/cli/exit"
	"sandwich/cmd/sandwich/internal/cli/flags"
	"sandwich/cmd/sandwich/internal/cli/modelflags"
	"sandwich/cmd/sandwich/internal/show"
	"sandwich/runtime/mem"
	"sandwich/tuner/measure/prefixes"
)

// sessionFlags are the flags of bench cache sessions.
type sessionFlags struct {
	modelFlags
	sessions, requests, longest int
	bytes                       int64
}

func newSessions() *cobra.Command {
	var f sessionFlags
	c := &cobra.Command{
		Use:   "sessions",
		Short: "Compare the hits of a small store with those of an exact LRU",
		Long: `Send the prompts of many sessions, which return at random, to an engine whose store is limited, and compare the tokens
that the store has of each prompt with those that an exact byte-weighted LRU of the same limit has. Texts are random.`,
		Example: "  sandwich bench cache sessions --model llama-160m.gguf --cache-bytes 256MB --sessions 200",
		Args:    flags.ExactArgs(0, ""),
	}
	f.add(c)
	fs := c.Flags()
	fs.IntVar(&f.sessions, "sessions", 200, "number of sessions")
	fs.IntVar(&f.requests, "requests", 0, "number of requests (default: three per session)")
	fs.IntVar(&f.longest, "tokens", 512, "maximum number of tokens of a session")
	f.bytes = 256 << 20
	flags.Bytes(fs, &f.bytes, "cache-bytes", "limit of the store")
	format := flags.Format(c, "table", "json", "csv")
	c.RunE = func(c *cobra.Command, _ []string) error { return sessionReport.After(c, *format)(f.run(c.Context())) }
	return c
}

func (f *sessionFlags) run(ctx context.Context) ([]prefixes.SessionRow, error) {
	if f.requests == 0 {
		f.requests = 3 * f.sessions
	}
	for _, err := range []error{inRange("sessions", f.sessions, 1, 1<<20), inRange("requests", f.requests, 1, 1<<20),
		inRange("tokens", f.longest, 65, modelflags.MaxContext-16)} {
		if err != nil {
			return nil, err
		}
	}
	if f.bytes < 1<<20 {
		return nil, exit.Usage(fmt.Errorf("--cache-bytes %d is too small; use at least 1MiB", f.bytes))
	}
	o, done, err := f.open()
	if err != nil {
		return nil, err
	}
	defer done()
	step, end := show.StepBar("bench cache sessions", f.requests)
	defer end()
	row, err := prefixes.Sessions(ctx, prefixes.SessionOptions{Open: o.engines(f.longest + 16), Dir: o.dir,
		Sessions: f.sessions, Requests: f.requests, Longest: f.longest, Bytes: f.bytes, Vocab: o.Shape.Vocab,
		Step: step})
	if err != nil {
		return nil, exit.With(exit.Input, err)
	}
	row.Model, row.Plan, row.KV, row.CPU = o.describe()
	return []prefixes.SessionRow{*row}, nil
}

var sessionReport = show.Report[prefixes.SessionRow]{
	Title: func(r *prefixes.SessionRow) string {
		return fmt.Sprintf("%s on %s, KV cache %s: %d requests of %d sessions, %d tokens", r.Model, r.CPU, r.KV,
			r.Requests, r.Sessions, r.Tokens)
	},
	Columns: []string{"limit", "most used", "written", "evicted blocks", "hit tokens", "hit tokens of an LRU", "ratio"},
	Numbers: []int{0, 1, 2, 3, 4, 5, 6},
	Cells: func(r *prefixes.SessionRow) []string {
		return []string{mem.FormatBytes(r.Limit), mem.FormatBytes(r.Most), mem.FormatBytes(r.Written),
			fmt.Sprint(r.Evicted), fmt.Sprint(r.Hits), fmt.Sprint(r.LRU), fmt.Sprintf("%.4f", r.Ratio)}
	},
	Header: "model,kv,plan,sessions,requests,tokens,limit_bytes,most_bytes,written_bytes,evicted_blocks,hit_tokens," +
		"lru_hit_tokens,ratio",
	Line: func(r *prefixes.SessionRow) string {
		return fmt.Sprintf("%s,%s,%s,%d,%d,%d,%d,%d,%d,%d,%d,%d,%.4f", show.CSVCell(r.Model), r.KV,
			show.CSVCell(r.Plan), r.Sessions, r.Requests, r.Tokens, r.Limit, r.Most, r.Written, r.Evicted, r.Hits,
			r.LRU, r.Ratio)
	},
}
