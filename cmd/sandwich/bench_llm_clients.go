package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"time"

	"sandwich/runtime/api"
	"sandwich/runtime/engine"
	"sandwich/runtime/server"
)

// lossGoal is how much of the tokens per second of the engine its server may cost.
const lossGoal = 0.05

// clientPrompt is the length of each client's prompt: short, so that generation is what is
// measured.
const clientPrompt = 8

// clientsRow is what many streaming clients get through the server, beside as many requests made to
// the engine in this process.
type clientsRow struct {
	Test    string    `json:"test"`
	Clients int       `json:"clients"`
	Engine  float64   `json:"engine_tokens_per_second"`
	Server  float64   `json:"server_tokens_per_second"`
	Loss    float64   `json:"loss"` // median over neighbouring samples
	Goal    float64   `json:"goal"`
	Engines []float64 `json:"engine_samples"`
	Servers []float64 `json:"server_samples"`
	Pauses  uint64    `json:"gc_pauses"` // while the samples were taken
	Longest float64   `json:"gc_longest_pause_seconds"`
	Model   string    `json:"model"`
	Plan    string    `json:"plan"`
	PUs     string    `json:"pus"`
	CPU     string    `json:"cpu"`
}

// runClients measures the first length of -n with f.clients requests at once, in turn in this
// process and through the server on the loopback interface.
func (f *llmFlags) runClients(ctx context.Context) ([]clientsRow, error) {
	s, err := f.session.load()
	if err != nil {
		return nil, err
	}
	defer s.Close()
	if len(f.threads) == 1 {
		f.session.threads = f.threads[0]
	}
	if err := s.choose(&f.session); err != nil {
		return nil, err
	}
	if err := s.needTokenizer(); err != nil {
		return nil, err
	}
	var rows []clientsRow
	for _, n := range f.gen {
		if n > 0 {
			row, err := f.measureClients(ctx, s, n)
			if err != nil {
				return nil, err
			}
			rows = append(rows, *row)
		}
	}
	return rows, nil
}

func (f *llmFlags) measureClients(ctx context.Context, s *session, n int) (*clientsRow, error) {
	e, err := s.engine(ctx, serving{context: clientPrompt + n + 1, parallel: f.clients, queue: f.clients,
		Service: engine.Service{MixedCap: f.clients, Aging: time.Minute}})
	if err != nil {
		return nil, err
	}
	defer e.Close()
	addr, stop, err := startServer(&generator{name: s.name, created: time.Now(), tok: s.tok, engine: e})
	if err != nil {
		return nil, err
	}
	defer stop()
	row := &clientsRow{Test: fmt.Sprintf("tg%d", n), Clients: f.clients, Goal: lossGoal, Model: s.name,
		Plan: armName(s.plan),
		PUs:  s.plan.Decode.PUs.String(), CPU: s.profile.Host.CPUModel}
	prompts := clientPrompts(f.clients, s.shape.Vocab)
	var losses []float64
	step, done := countProgress("bench llm --clients", f.reps+1)
	defer done()
	pauses := countPauses()
	for rep := range f.reps + 1 {
		if rep == 1 {
			pauses = countPauses()
		}
		direct, err := timed(ctx, prompts, n, func(ctx context.Context, prompt []int32) error {
			return askEngine(ctx, e,
				prompt, n)
		})
		if err != nil {
			return nil, err
		}
		served, err := timed(ctx, prompts, n, func(ctx context.Context, prompt []int32) error {
			return askServer(ctx,
				addr, prompt, n)
		})
		if err != nil {
			return nil, err
		}
		if rep > 0 { // the first one warms up
			row.Engines, row.Servers = append(row.Engines, direct), append(row.Servers, served)
			losses = append(losses, 1-served/direct)
		}
		step()
	}
	count, longest := pauses.since()
	row.Pauses, row.Longest = count, longest.Seconds()
	row.Engine, row.Server = summarize(row.Engines).median, summarize(row.Servers).median
	row.Loss = summarize(losses).median
	return row, nil
}

// startServer serves on a free port of the loopback interface until stop.
func startServer(g *generator) (addr string, stop func(), err error) {
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

// clientPrompts are different from their first token on, so that nothing is shared.
func clientPrompts(clients, vocab int) [][]int32 {
	out := make([][]int32, clients)
	for i := range out {
		out[i] = make([]int32, clientPrompt)
		for j := range out[i] {
			out[i][j] = int32((1 + i*clientPrompt + j) % vocab)
		}
	}
	return out
}

// timed asks for every prompt at once and returns the tokens per second of all.
func timed(ctx context.Context, prompts [][]int32, n int, ask func(context.Context, []int32) error) (float64, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var all sync.WaitGroup
	began := time.Now()
	for _, prompt := range prompts {
		all.Go(func() {
			if err := ask(ctx, prompt); err != nil {
				cancel(err) // the first one counts
			}
		})
	}
	all.Wait()
	return float64(n*len(prompts)) / time.Since(began).Seconds(), context.Cause(ctx)
}

func askEngine(ctx context.Context, e *engine.Engine, prompt []int32, n int) error {
	res, err := e.Generate(ctx, api.Request{Prompt: prompt, MaxTokens: n, IgnoreEOS: true},
		func(api.Token) error { return nil })
	if err == nil && res.Tokens != n {
		err = fmt.Errorf("a request got %d tokens of %d", res.Tokens, n)
	}
	return err
}

// askServer streams one completion over a connection of its own. It only reads what arrives and
// looks at it at the end: the client's work is not the server's cost.
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
		return errors.New("the server did not answer in full: " + clip(first, 80))
	}
	return nil
}

var clientsReport = report[clientsRow]{
	title: func(r *clientsRow) string { return r.Model + " on " + r.CPU },
	columns: []string{"test", "clients", "plan", "in process, tokens/s", "server, tokens/s", "loss", "goal: at most",
		"GC pauses"},
	numbers: []int{1, 3, 4, 5},
	cells: func(r *clientsRow) []string {
		verdict := "met"
		if r.Loss > r.Goal {
			verdict = "missed"
		}
		return []string{r.Test, fmt.Sprint(r.Clients), r.Plan, fmt.Sprintf("%.1f", r.Engine), fmt.Sprintf("%.1f",
			r.Server), fmt.Sprintf("%.1f %%", 100*r.Loss),
			fmt.Sprintf("%.0f %% (%s)", 100*r.Goal, verdict), fmt.Sprintf("%d, longest %.2f ms", r.Pauses,
				1000*r.Longest)}
	},
	header: "test,model,clients,plan,engine_tokens_per_second,server_tokens_per_second,loss,gc_pauses,gc_longest_pause_seconds",
	line: func(r *clientsRow) string {
		return fmt.Sprintf("%s,%s,%d,%s,%.2f,%.2f,%.4f,%d,%.9f", r.Test, csvCell(r.Model), r.Clients, csvCell(r.Plan),
			r.Engine, r.Server, r.Loss, r.Pauses, r.Longest)
	},
}
