package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"sandwich/runtime/api"
	"sandwich/runtime/engine"
	"sandwich/runtime/kvcache"
	"sandwich/runtime/sched"
	"sandwich/tuner/trace"
)

// loadTarget is who the requests are offered to.
type loadTarget interface {
	// ask runs one request and calls token for each token as it comes. It returns how long the
	// request waited for its first forward, 0 where that is not known.
	ask(ctx context.Context, prompt []int32, r trace.Request, token func()) (pending time.Duration, err error)
	// vocab is how many token ids a prompt may hold.
	vocab() int
	// begin starts a run, and end adds what only the target knows of it.
	begin(at time.Time)
	end(run *loadRun)
}

// loadRun is what was seen of a trace.
type loadRun struct {
	*trace.Report
	Policy    string
	Simulated bool
	Model     string
	CPU       string
	Forwards  []engine.Forward // in order, on an engine in this process
	Began     time.Time
	Joules    float64 // of all packages, 0 where the machine does not say
	Goodput   float64 // requests a minute; 0: not looked for, or none
}

// offer sends each request of the trace at its time, whether those before have ended or not, and
// waits for all. A refusal is an outcome; any other error ends the run.
func offer(ctx context.Context, t trace.Trace, seed uint64, target loadTarget) (*loadRun, error) {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	out := make([]trace.Outcome, len(t))
	prompts := loadPrompts(t, seed, target.vocab())
	joules := readJoules()
	began := time.Now()
	target.begin(began)
	var all sync.WaitGroup
	for i, r := range t {
		out[i].Request = r
		select {
		case <-time.After(time.Until(began.Add(r.At))):
		case <-ctx.Done():
		}
		if ctx.Err() != nil {
			break
		}
		all.Go(func() {
			o := &out[i]
			o.At = time.Since(began)
			pending, err := target.ask(ctx, prompts[i], r, func() {
				o.Tokens++
				o.End = time.Since(began)
				if o.Tokens == 1 {
					o.First = o.End
				}
			})
			if pending > 0 {
				o.Started = o.At + pending
			}
			var full *api.QueueFullError
			switch {
			case errors.As(err, &full):
				o.Rejected = true
			case err != nil:
				fail(err) // the first one counts
			case o.Tokens == 0:
				fail(errors.New("a request ended without a token"))
			}
		})
	}
	all.Wait()
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	run := &loadRun{Began: began, Report: trace.NewReport(out, time.Since(began)-out[0].At, 0, sched.Stats{})}
	if joules > 0 {
		run.Joules = max(0, readJoules()-joules)
	}
	target.end(run)
	return run, nil
}

// loadPrompts are random tokens, so that nothing is shared: ids that no vocabulary uses for
// control.
func loadPrompts(t trace.Trace, seed uint64, vocab int) [][]int32 {
	rng := rand.New(rand.NewPCG(seed, 30))
	lo := min(vocab/2, 300)
	out := make([][]int32, len(t))
	for i, r := range t {
		out[i] = make([]int32, r.Prompt)
		for j := range out[i] {
			out[i][j] = int32(lo + rng.IntN(vocab-lo))
		}
	}
	return out
}

// inside is the engine in this process.
type inside struct {
	engine *engine.Engine

	mu       sync.Mutex
	forwards []engine.Forward
	before   engine.Stats
}

func (s *inside) observe(f engine.Forward) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forwards = append(s.forwards, f)
}

func (s *inside) vocab() int { return s.engine.Runner().Model.Dims.Vocab }

func (s *inside) begin(time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forwards, s.before = nil, s.engine.Stats()
}

func (s *inside) end(run *loadRun) {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.engine.Stats()
	run.Forwards = s.forwards
	run.Busy = st.PrefillTime + st.DecodeTime - s.before.PrefillTime - s.before.DecodeTime
	run.Sched = st.Scheduler
	run.Sched.Stops -= s.before.Scheduler.Stops
	run.Sched.Quanta -= s.before.Scheduler.Quanta
	run.Sched.Preemptions -= s.before.Scheduler.Preemptions
	run.Sched.Promotions -= s.before.Scheduler.Promotions
}

func (s *inside) ask(
	ctx context.Context, prompt []int32, r trace.Request, token func(),
) (pending time.Duration, err error) {
	res, err := s.engine.Generate(ctx,
		api.Request{Prompt: prompt, MaxTokens: r.Output, IgnoreEOS: true, Class: r.Class}, func(t api.Token) error {
			if t.ID != api.NoToken {
				token()
			}
			return nil
		})
	return res.Queued, err
}

// remote is a server with OpenAI's API.
type remote struct{ url, key string }

// remoteVocab is how many ids every vocabulary of today has.
const remoteVocab = 4096

func (*remote) vocab() int      { return remoteVocab }
func (*remote) begin(time.Time) {}
func (*remote) end(*loadRun)    {}

func (s *remote) ask(
	ctx context.Context, prompt []int32, r trace.Request, token func(),
) (pending time.Duration, err error) {
	return 0, s.stream(ctx, prompt, r, token)
}

// stream asks for one completion. The class goes with a header: fields that a server does not
// know may be errors there.
func (s *remote) stream(ctx context.Context, prompt []int32, r trace.Request, token func()) error {
	body, err := json.Marshal(map[string]any{"prompt": prompt, "max_tokens": r.Output, "ignore_eos": true,
		"temperature": 0, "stream": true})
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url+"/v1/completions", bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Sandwich-Priority", r.Class.String())
	if s.key != "" {
		req.Header.Set("Authorization", "Bearer "+s.key)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return fmt.Errorf("--url: %w", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusTooManyRequests {
		return &api.QueueFullError{}
	}
	if resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 500))
		return fmt.Errorf("--url: the server answers %s (--ctx cuts the lengths that are asked for): %s", resp.Status,
			printable(strings.TrimSpace(string(text))))
	}
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if data, ok := strings.CutPrefix(lines.Text(), "data:"); ok && strings.Contains(data, `"finish_reason":null`) {
			token() // a chunk is taken for a token: servers join few
		}
	}
	return lines.Err()
}

// simulate runs the arrivals of a run on the virtual clock, with the op times of the engine.
func simulate(real *loadRun, e *engine.Engine, v serving) (*loadRun, error) {
	t := make(trace.Trace, len(real.Outcomes))
	for i := range real.Outcomes {
		t[i] = real.Outcomes[i].Request
	}
	plan := e.Runner().Plan
	o := trace.Options{Sched: sched.Config{Blocks: max(e.Runner().Blocks(), kvcache.BlocksFor(v.context)),
		MaxRunning: v.parallel, Queue: v.queue, Chunk: plan.Chunk, Policy: v.Policy, MixedCap: v.MixedCap,
		Aging: v.Aging, Quantum: v.Quantum, Bound: v.Bound, TPOT: v.TPOT}}
	report, err := trace.Replay(t, trace.Measured{Table: e.Costs()}, o)
	if err != nil {
		return nil, err
	}
	return &loadRun{Report: report, Policy: v.Policy, Simulated: true, Model: real.Model, CPU: real.CPU}, nil
}

// readJoules sums up the energy counters of the packages, 0 where they cannot be read.
func readJoules() (sum float64) {
	zones, _ := filepath.Glob("/sys/class/powercap/intel-rapl:[0-9]*/energy_uj")
	for _, z := range zones {
		if strings.Count(filepath.Base(filepath.Dir(z)), ":") > 1 {
			continue // a plane of a package
		}
		text, err := os.ReadFile(z)
		if err != nil {
			return 0
		}
		v, _ := strconv.ParseFloat(strings.TrimSpace(string(text)), 64)
		sum += v / 1e6
	}
	return sum
}
