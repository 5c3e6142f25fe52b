package llm

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sandwich/cmd/sandwich/internal/cli/exit"
	"sandwich/cmd/sandwich/internal/cli/flags"
	"sandwich/cmd/sandwich/internal/cli/modelflags"
	"sandwich/cmd/sandwich/internal/show"
	"sandwich/runtime/engine"
	"sandwich/runtime/server"
	"sandwich/runtime/server/generation"
	"sandwich/runtime/session"
	"sandwich/tuner/measure"
	"sandwich/tuner/measure/llm"
)

// clientFlags holds the flags of the subcommands with concurrent requests.
type clientFlags struct {
	singleFlags
	clients int
	gen     []int
}

func (f *clientFlags) add(c *cobra.Command) {
	f.singleFlags.add(c, 5)
	f.session.AddDevice(c)
	f.session.AddDeviceDispatch(c)
	modelflags.AddVerbose(c)
	c.Flags().IntVar(&f.clients, "clients", 8, "number of concurrent requests")
	c.Flags().IntSliceVarP(&f.gen, "tg", "n", []int{64}, "numbers of generated tokens per request")
}

func (f *clientFlags) check() error {
	if f.clients < 1 || f.clients > modelflags.MaxParallel {
		return exit.Usage(fmt.Errorf("--clients %d is out of range; give a number from 1 to %d", f.clients,
			modelflags.MaxParallel))
	}
	return cmp.Or(checkTokens("-n", f.gen), checkReps(f.reps))
}

func newServer() *cobra.Command {
	var f clientFlags
	c := &cobra.Command{
		Use:   "server",
		Short: "Measure what the HTTP server costs, with concurrent streaming clients",
		Long: `Measure generation with concurrent streaming clients of the HTTP server on the loopback interface, interleaved with as
many requests in this process. The difference is the cost of the server.`,
		Example: "  sandwich bench llm server --model llama.gguf --clients 32 -n 64",
		Args:    flags.ExactArgs(0, ""),
	}
	f.add(c)
	format := flags.Format(c, "table", "json", "csv")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if err := f.check(); err != nil {
			return err
		}
		return clientsReport.After(c, *format)(f.run(c.Context()))
	}
	return c
}

// run measures each number of generated tokens.
func (f *clientFlags) run(ctx context.Context) ([]measure.ClientsRow, error) {
	s, err := f.open()
	if err != nil {
		return nil, err
	}
	defer s.Close()
	var rows []measure.ClientsRow
	for _, n := range f.gen {
		if n > 0 {
			row, err := f.measure(ctx, s, n)
			if err != nil {
				return nil, err
			}
			rows = append(rows, *row)
		}
	}
	return rows, nil
}

// open opens a model that has a tokenizer, and its plan.
func (f *clientFlags) open() (*session.Session, error) {
	s, err := f.session.Open()
	if err != nil {
		return nil, err
	}
	if err := s.CheckTokenizer(); err != nil {
		s.Close()
		return nil, exit.Usage(err)
	}
	return s, nil
}

// engine starts an engine for the clients, with answers of n tokens.
func (f *clientFlags) engine(ctx context.Context, s *session.Session, n int) (*engine.Engine, error) {
	return s.Engine(ctx, session.Sizes{Context: measure.ClientPrompt + n + 1, Parallel: f.clients, Queue: f.clients,
		Service: engine.Service{MixedCap: f.clients, Aging: time.Minute}})
}

func (f *clientFlags) measure(ctx context.Context, s *session.Session, n int) (*measure.ClientsRow, error) {
	e, err := f.engine(ctx, s, n)
	if err != nil {
		return nil, err
	}
	defer e.Close()
	addr, stop, err := startServer(s.Generator(e, f.clients))
	if err != nil {
		return nil, err
	}
	defer stop()
	step, done := show.StepBar("bench llm server", f.reps+1)
	defer done()
	row, err := measure.Clients(ctx, measure.ClientsOptions{Clients: f.clients, Tokens: n, Vocab: s.Shape.Vocab,
		Reps: f.reps, Engine: e, Step: step,
		Server: func(ctx context.Context, prompt []int32) error { return askServer(ctx, addr, prompt, n) }})
	if err != nil {
		return nil, err
	}
	row.Model, row.Plan, row.PUs, row.CPU = s.Name, llm.PlanName(s.Plan), s.Plan.Decode.PUs.String(),
		s.Profile.Host.CPUModel
	return row, nil
}

// startServer serves on a free port of the loopback interface until stop.
func startServer(g generation.Generator) (addr string, stop func(), err error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = server.New(g, server.Options{Grace: time.Second}).Serve(ctx, ln) // clients see its failures
	}()
	return ln.Addr().String(), func() { cancel(); <-ended }, nil
}

// askServer streams one completion over a separate connection. It inspects the answer only at the
// end, so that the cost of the client is not attributed to the server.
func askServer(ctx context.Context, addr string, prompt []int32, n int) error {
	body, err := json.Marshal(map[string]any{"prompt": prompt, "max_tokens": n, "ignore_eos": true, "temperature": 0,
		"stream":         true,
		"stream_options": map[string]bool{"include_usage": true}})
	if err != nil {
		return err
	}
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	if _, err := fmt.Fprintf(conn, "POST /v1/completions HTTP/1.1\r\nHost: bench\r\nConnection: "+
		"close\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
		len(body), body); err != nil {
		return err
	}
	answer, err := io.ReadAll(conn)
	if err != nil {
		return err
	}
	if !bytes.Contains(answer, fmt.Appendf(nil, `"completion_tokens":%d`, n)) {
		first, _, _ := strings.Cut(string(answer), "\r\n")
		return errors.New("the server did not answer in full: " + show.Clip(first, 80))
	}
	return nil
}

var clientsReport = show.Report[measure.ClientsRow]{
	Title: func(r *measure.ClientsRow) string { return r.Model + " on " + r.CPU },
	Columns: []string{"test", "clients", "plan", "in process, tokens/s", "server, tokens/s", "loss", "goal: at most",
		"GC pauses"},
	Numbers: []int{1, 3, 4, 5},
	Cells: func(r *measure.ClientsRow) []string {
		verdict := "met"
		if r.Loss > r.Goal {
			verdict = "missed"
		}
		return []string{r.Test, fmt.Sprint(r.Clients), r.Plan, fmt.Sprintf("%.1f", r.Engine), fmt.Sprintf("%.1f",
			r.Server), fmt.Sprintf("%.1f %%", 100*r.Loss),
			fmt.Sprintf("%.0f %% (%s)", 100*r.Goal, verdict), fmt.Sprintf("%d, longest %.2f ms", r.Pauses,
				1000*r.Longest)}
	},
	Header: "test,model,clients,plan,engine_tokens_per_second,server_tokens_per_second,loss,gc_pauses,gc_longest_pause_seconds",
	Line: func(r *measure.ClientsRow) string {
		return fmt.Sprintf("%s,%s,%d,%s,%.2f,%.2f,%.4f,%d,%.9f", r.Test, show.CSVCell(r.Model), r.Clients,
			show.CSVCell(r.Plan),
			r.Engine, r.Server, r.Loss, r.Pauses, r.Longest)
	},
}
