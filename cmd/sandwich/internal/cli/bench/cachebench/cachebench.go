// Package cachebench has the verbs of bench cache, which measure the prefix store.
package cachebench

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"sandwich/cmd/sandwich/internal/cli/exit"
	"sandwich/cmd/sandwich/internal/cli/flags"
	"sandwich/cmd/sandwich/internal/cli/modelflags"
	"sandwich/cmd/sandwich/internal/show"
	"sandwich/runtime/engine"
	"sandwich/runtime/kvcache/disk"
	"sandwich/runtime/mem"
	"sandwich/runtime/session"
	"sandwich/tuner/measure/llm"
	"sandwich/tuner/measure/prefixes"
)

// modelFlags are the flags of all verbs of bench cache.
type modelFlags struct {
	session modelflags.Flags
	folder  string // in which the store is made; "": that of temporary files
}

func (f *modelFlags) add(c *cobra.Command) {
	f.session.Add(c)
	c.Flags().StringVar(&f.folder, "dir", "", "folder on the disk to measure; the store is made in it and removed "+
		"(default: the folder of temporary files, which may be in memory)")
}

// opened is a session with a folder for a store.
type opened struct {
	*session.Session
	dir string
}

// open opens the session and makes the folder. The caller calls done.
func (f *modelFlags) open() (o opened, done func(), err error) {
	dir, err := os.MkdirTemp(f.folder, "sandwich-cache-")
	if err != nil {
		return o, nil, exit.Usage(fmt.Errorf("--dir: %w", err))
	}
	s, err := f.session.Open()
	if err != nil {
		_ = os.RemoveAll(dir)
		return o, nil, err
	}
	return opened{s, dir}, func() {
		s.Close()
		_ = os.RemoveAll(dir)
	}, nil
}

// engines returns a function that opens engines for requests of up to so many tokens.
func (o *opened) engines(tokens int) prefixes.Open {
	return func(ctx context.Context, s *disk.Store) (*engine.Engine, error) {
		return o.Engine(ctx, session.Sizes{Context: tokens, Parallel: 1, Queue: 1, Prefixes: s, AlwaysLoad: true})
	}
}

// describe returns the model, plan, type of the KV cache and CPU of a row.
func (o *opened) describe() (model, plan, kv, cpu string) {
	return o.Name, llm.PlanName(o.Plan), o.Plan.KV.String(), o.Profile.Host.CPUModel
}

// inRange refuses a flag outside its range.
func inRange(name string, value, lo, hi int) error {
	if value < lo || value > hi {
		return exit.Usage(fmt.Errorf("--%s %d is out of range; give a number from %d to %d", name, value, lo, hi))
	}
	return nil
}

// New returns the verb bench cache.
func New() *cobra.Command {
	var f modelFlags
	var tokens int
	c := &cobra.Command{
		Use:   "cache",
		Short: "Measure the prefix store: loads after a restart, hit ratio, token times, recorded sessions",
		Long: `Measure the first token of a prompt after a restart of the server. The prompt, of random tokens, is computed and stored;
its files are dropped from the page cache and read once to measure the rate of the disk; then they are dropped again, and
a new engine loads the prompt. The bound is 1.25 times the bytes divided by the measured rate, plus 0.3 s. The log
probabilities of the first tokens must have the same bits as without the store. A load ends at a multiple of 64 tokens
before the last token; the rest of the prompt is computed, which the time of the first token includes.

The verbs sessions, loop and replay measure other properties of the store.`,
		Example: `  sandwich bench cache --model llama.gguf --tokens 16000 --dir /var/tmp
  sandwich bench cache --model llama.gguf --tokens 16000 --kv q8_0 --format json
  sandwich bench cache sessions --model llama-160m.gguf --cache-bytes 256MB
  sandwich bench cache loop --model llama.gguf --delay 20ms
  sandwich bench cache replay sessions/qwen --model agent.gguf --ctx 32768`,
		Args: flags.ExactArgs(0, ""),
	}
	f.add(c)
	c.Flags().IntVar(&tokens, "tokens", 16000, "tokens of the prompt")
	format := flags.Format(c, "table", "json", "csv")
	c.RunE = func(c *cobra.Command, _ []string) error {
		return restartReport.After(c, *format)(f.restart(c.Context(), tokens))
	}
	c.AddCommand(newSessions(), newLoop(), newReplay())
	return c
}

// restart measures a restart.
func (f *modelFlags) restart(ctx context.Context, tokens int) ([]prefixes.RestartRow, error) {
	if err := inRange("tokens", tokens, 65, modelflags.MaxContext-16); err != nil {
		return nil, err
	}
	o, done, err := f.open()
	if err != nil {
		return nil, err
	}
	defer done()
	step, end := show.StepBar("bench cache", prefixes.RestartSteps)
	defer end()
	row, err := prefixes.Restart(ctx, prefixes.RestartOptions{Open: o.engines(tokens + 16), Dir: o.dir, Tokens: tokens,
		Vocab: o.Shape.Vocab, Step: step})
	if err != nil {
		return nil, exit.With(exit.Input, err)
	}
	row.Model, row.Plan, row.KV, row.CPU = o.describe()
	return []prefixes.RestartRow{*row}, nil
}

// seconds shows seconds.
func seconds(s float64) string {
	return time.Duration(s * float64(time.Second)).Round(time.Microsecond).String()
}

// interval shows a distance of states in tokens, "-" for a model without states.
func interval(n int) string {
	if n == 0 {
		return "-"
	}
	return fmt.Sprint(n)
}

var restartReport = show.Report[prefixes.RestartRow]{
	Title: func(r *prefixes.RestartRow) string {
		pages := "pages were dropped from the page cache before the load"
		if !r.Dropped {
			pages = "pages were not dropped from the page cache, so that the load is too fast"
		}
		equal := "log probabilities are bit-equal"
		if !r.Equal {
			equal = "log probabilities DIFFER"
		}
		return fmt.Sprintf("%s on %s, KV cache %s: %s; %s", r.Model, r.CPU, r.KV, equal, pages)
	},
	Columns: []string{"tokens", "loaded", "bytes", "disk, MB/s", "load", "first token, loaded", "bound",
		"first token, computed", "share", "states every"},
	Numbers: []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9},
	Cells: func(r *prefixes.RestartRow) []string {
		return []string{fmt.Sprint(r.Tokens), fmt.Sprint(r.Loaded), mem.FormatBytes(r.Bytes),
			fmt.Sprintf("%.0f", r.Rate/1e6), seconds(r.Load), seconds(r.First), seconds(r.Bound), seconds(r.Computed),
			show.Share(r.Share), interval(r.Interval)}
	},
	Header: "model,kv,plan,tokens,loaded_tokens,bytes,read_bytes_per_second,loaded_first_token_seconds,bound_seconds," +
		"computed_first_token_seconds,share,state_interval_tokens,equal,pages_dropped,load_seconds",
	Line: func(r *prefixes.RestartRow) string {
		return fmt.Sprintf("%s,%s,%s,%d,%d,%d,%.0f,%.4f,%.4f,%.4f,%.4f,%d,%v,%v,%.4f", show.CSVCell(r.Model), r.KV,
			show.CSVCell(r.Plan), r.Tokens, r.Loaded, r.Bytes, r.Rate, r.First, r.Bound, r.Computed, r.Share,
			r.Interval, r.Equal, r.Dropped, r.Load)
	},
}
