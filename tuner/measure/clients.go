package measure

import (
	"context"
	"fmt"
	"sync"
	"time"

	"sandwich/runtime/api"
	"sandwich/runtime/engine"
)

// lossGoal is how much of the tokens per second of the engine its server may cost.
const lossGoal = 0.05

// ClientPrompt is the length of each client's prompt: short, so that generation is what is
// measured.
const ClientPrompt = 8

// ClientsOptions say how many requests are made at once, and what asks the server.
type ClientsOptions struct {
	Clients int
	Tokens  int // that each request generates
	Vocab   int
	Reps    int
	Engine  *engine.Engine
	Server  func(ctx context.Context, prompt []int32) error // one request; the engine behind it is Engine
	Step    func()                                          // after each of Reps+1 samples
}

// ClientsRow is what many streaming clients get through the server, beside as many requests made to
// the engine in this process; its JSON is stable.
type ClientsRow struct {
	Test    string    `json:"test"`
	Clients int       `json:"clients"`
	Engine  float64   `json:"engine_tokens_per_second"`
	Server  float64   `json:"server_tokens_per_second"`
	Loss    float64   `json:"loss"` // median over neighboring samples
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

// Clients measures requests to the engine and to its server in turn; the names of model, plan and
// CPU are the caller's to fill in. `sandwich bench llm --clients` prints the row.
func Clients(ctx context.Context, o ClientsOptions) (*ClientsRow, error) {
	row := &ClientsRow{Test: fmt.Sprintf("tg%d", o.Tokens), Clients: o.Clients, Goal: lossGoal}
	prompts := clientPrompts(o.Clients, o.Vocab)
	var losses []float64
	pauses := countPauses()
	for rep := range o.Reps + 1 {
		if rep == 1 {
			pauses = countPauses()
		}
		direct, err := timed(ctx, prompts, o.Tokens, o.ask)
		if err != nil {
			return nil, err
		}
		served, err := timed(ctx, prompts, o.Tokens, o.Server)
		if err != nil {
			return nil, err
		}
		if rep > 0 { // the first one warms up
			row.Engines, row.Servers = append(row.Engines, direct), append(row.Servers, served)
			losses = append(losses, 1-served/direct)
		}
		o.Step()
	}
	count, longest := pauses.since()
	row.Pauses, row.Longest = count, longest.Seconds()
	row.Engine, row.Server = Summarize(row.Engines).Median, Summarize(row.Servers).Median
	row.Loss = Summarize(losses).Median
	return row, nil
}

// ask makes one request to the engine.
func (o *ClientsOptions) ask(ctx context.Context, prompt []int32) error {
	res, err := o.Engine.Generate(ctx, api.Request{Prompt: prompt, MaxTokens: o.Tokens, IgnoreEOS: true},
		func(api.Token) error { return nil })
	if err == nil && res.Tokens != o.Tokens {
		err = fmt.Errorf("a request got %d tokens of %d", res.Tokens, o.Tokens)
	}
	return err
}

// clientPrompts are different from their first token on, so that nothing is shared.
func clientPrompts(clients, vocab int) [][]int32 {
	out := make([][]int32, clients)
	for i := range out {
		out[i] = make([]int32, ClientPrompt)
		for j := range out[i] {
			out[i][j] = int32((1 + i*ClientPrompt + j) % vocab)
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
