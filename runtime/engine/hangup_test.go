package engine

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sandwich/runtime/api"
	"sandwich/runtime/phase"
	"sandwich/runtime/pool"
)

var errHungUp = errors.New("the client hung up")

// TestPanicInQueued checks that a request ends if its Queued callback panics, which a server may
// recover.
func TestPanicInQueued(t *testing.T) {
	e := open(t, tinyOptions(t))
	func() {
		defer func() {
			if recover() != errHungUp {
				t.Error("the panic did not reach the caller")
			}
		}()
		_, _ = e.Generate(t.Context(), api.Request{Prompt: tinyPrompt(1, 20), IgnoreEOS: true,
			Queued: func(api.Queue) { panic(errHungUp) }}, func(api.Token) error { return nil })
	}()
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.jobs) > 0 {
		t.Errorf("%d requests continue", len(e.jobs))
	}
}

// TestRandomCancels cancels some of many concurrent requests at random moments: the others get
// exactly their tokens.
func TestRandomCancels(t *testing.T) {
	o := tinyOptions(t)
	o.Queue = 100
	e := open(t, o)
	const kinds = 5
	clients := 60
	if raceEnabled {
		clients = 20
	}
	var want [kinds][]int32
	request := func(i int) api.Request {
		prompt := tinyPrompt(uint64(i%kinds), 20+30*(i%kinds))
		return api.Request{Prompt: prompt, MaxTokens: 15, IgnoreEOS: true, Class: api.Class(i / kinds % 2)}
	}
	for i := range want {
		want[i], _ = generate(t, e, request(i))
	}
	var all sync.WaitGroup
	var whole atomic.Int32
	for i := range clients {
		all.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(i), 9))
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			quit := rng.IntN(30) // tokens after which the client goes, if it gets so many
			if i%4 == 0 {
				time.AfterFunc(time.Duration(rng.IntN(3000))*time.Microsecond, cancel)
			}
			var got []int32
			_, err := e.Generate(ctx, request(i), func(tok api.Token) error {
				if len(got) == quit {
					return errHungUp
				}
				if tok.ID >= 0 {
					got = append(got, tok.ID)
				}
				return nil
			})
			switch {
			case err == nil && len(got) != 15, err != nil && !errors.Is(err, errHungUp) && !errors.Is(err,
				context.Canceled):
				t.Errorf("client %d: %d tokens, %v", i, len(got), err)
			case err == nil:
				whole.Add(1)
			}
			for k, id := range got {
				if id != want[i%kinds][k] {
					t.Errorf("client %d got another token %d than alone", i, k)
					break
				}
			}
		})
	}
	all.Wait()
	if whole.Load() == 0 {
		t.Error("no client stayed to the end: the test tests nothing")
	}
	checkIdleSoon(t, e)
}

// TestThousandHangups cancels a thousand requests while their prompts are computed or wait:
// afterwards the queue is empty, every KV block is free, and the engine still serves.
func TestThousandHangups(t *testing.T) {
	o := tinyOptions(t)
	o.Queue = 1000
	e := open(t, o)
	var all sync.WaitGroup
	for i := range 1000 {
		all.Go(func() {
			patience := time.Duration(i%40) * 100 * time.Microsecond
			prompt := tinyPrompt(uint64(i), 200)
			if i%100 == 99 {
				patience, prompt = time.Minute, tinyPrompt(99, 200) // goes at the first token
			}
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			req := api.Request{Prompt: prompt, Class: api.Class(i % 2)}
			_, err := e.Generate(ctx, req, func(api.Token) error { return errHungUp })
			if !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, errHungUp) {
				t.Errorf("client %d: %v", i, err)
			}
		})
	}
	all.Wait()
	checkIdleSoon(t, e)
	if st := e.Stats(); st.Prefills == 0 || st.Requests < 10 {
		t.Errorf("%d prefills for %d requests: the test tests nothing", st.Prefills, st.Requests)
	}
	if ids, _ := generate(t, e, api.Request{Prompt: tinyPrompt(1, 8), MaxTokens: 4,
		IgnoreEOS: true}); len(ids) != 4 {
		t.Errorf("the engine gave %d tokens afterwards", len(ids))
	}
}

// TestCancelHaltsPrefill checks that a cancelled prefill ends at the next op, and that its blocks
// are free then.
func TestCancelHaltsPrefill(t *testing.T) {
	e := byHand(t, tinyOptions(t))
	e.runner.Lead(func(l *pool.Leader) {
		j := e.enter(t, api.Request{Prompt: tinyPrompt(1, 100)})
		act := e.driver.Next()
		e.cancel(j)
		e.run(l, act)
		if act := e.forward(l); act != nil {
			t.Errorf("after the only client hung up there is still %+v to do", act)
		}
	})
	if st := e.Stats(); st.Scheduler.Stops != 1 || st.Prefills != 1 {
		t.Errorf("%d of %d prefills were halted, want the one there was", st.Scheduler.Stops, st.Prefills)
	}
	checkIdle(t, e)
}

// TestCloseDuringWork checks that every request of an engine that is being closed gets its whole
// answer or api.ErrClosed.
func TestCloseDuringWork(t *testing.T) {
	for round := range 5 {
		o := tinyOptions(t)
		o.Queue = 100
		e, err := New(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		for i := range 20 {
			all.Go(func() {
				req := api.Request{Prompt: tinyPrompt(uint64(i), 150), IgnoreEOS: true}
				_, err := e.Generate(context.Background(), req, func(api.Token) error { return nil })
				if err != nil && !errors.Is(err, api.ErrClosed) {
					t.Error(err)
				}
			})
		}
		time.Sleep(time.Duration(round) * time.Millisecond)
		e.Close()
		all.Wait()
	}
}

// TestPanicFailsAll checks that a panic in a forward ends every request, running and waiting, with
// an error that names it, that later requests are refused with that error, and that Close works.
func TestPanicFailsAll(t *testing.T) {
	o := tinyOptions(t)
	o.Parallel = 2
	e := open(t, o)
	now, err := e.watch.read()
	if err != nil {
		t.Fatal(err)
	}
	teams, _ := e.runner.TeamsFor(now)
	teams[phase.Decode].Workers = []int{99}
	e.runner.UseTeams(teams) // the first decode batch panics
	var all sync.WaitGroup
	check := func(err error) {
		var internal *InternalError
		if !errors.As(err, &internal) {
			t.Errorf("after a panic: %v", err)
		}
	}
	for i := range 6 {
		all.Go(func() {
			req := api.Request{Prompt: tinyPrompt(uint64(i), 40), IgnoreEOS: true}
			_, err := e.Generate(context.Background(), req, func(api.Token) error { return nil })
			check(err)
		})
	}
	all.Wait()
	_, err = e.Generate(context.Background(), api.Request{Prompt: tinyPrompt(1, 4)}, nil)
	check(err)
	check(e.Stats().Failed)
}

// TestPanicOnWorker is TestPanicFailsAll for a panic on the thread of a worker, which is passed on
// to the engine.
func TestPanicOnWorker(t *testing.T) {
	e := open(t, tinyOptions(t))
	ops := e.runner.Model.Ops
	ops[len(ops)-3].Norm = nil // the output norm
	_, err := e.Generate(context.Background(), api.Request{Prompt: tinyPrompt(1, 4)}, nil)
	var internal *InternalError
	if !errors.As(err, &internal) || len(internal.Stack) == 0 || len(err.Error()) > 200 {
		t.Errorf("after a panic: %v", err)
	}
}
