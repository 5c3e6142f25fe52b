package engine

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"sandwich/runtime/api"
)

// TestProgress checks that a request receives the progress of its prompt after each chunk, in
// order, until its first token, with the cached part, and the estimate of the first token.
func TestProgress(t *testing.T) {
	e := open(t, tinyOptions(t)) // chunks of 32
	prompt := tinyPrompt(1, 200)
	for _, cached := range []int{0, 192} {
		var heard []api.Progress
		var stood api.Queue
		tokens := 0
		res, err := e.Generate(context.Background(), api.Request{Prompt: prompt, MaxTokens: 3, IgnoreEOS: true,
			Queued: func(q api.Queue) { stood = q },
			Progress: func(p api.Progress) {
				if tokens > 0 {
					t.Error("progress behind the first token")
				}
				heard = append(heard, p)
			}}, func(api.Token) error { tokens++; return nil })
		if err != nil || res.CachedTokens != cached || stood.First <= 0 || stood.Ahead != 0 || len(heard) == 0 {
			t.Fatalf("%+v, %v, stood %+v, heard %v", res, err, stood, heard)
		}
		before := 0
		for _, p := range heard { // chunks that end at once are told of once
			if p.Total != 200 || p.Cached != cached || p.Done <= before || p.Done > 200 || p.Took <= 0 {
				t.Errorf("heard %+v behind %d", p, before)
			}
			before = p.Done
		}
	}
}

// TestProgressNeverFalls checks that progress that falls, as when a load fails, is not reported.
func TestProgressNeverFalls(t *testing.T) {
	e := byHand(t, tinyOptions(t))
	var done []int
	j := &job{req: &api.Request{Prompt: make([]int32, 100),
		Progress: func(p api.Progress) { done = append(done, p.Done) }}}
	reported := 0
	for _, computed := range []int{30, 60, 40, 60, 70, 0, 200} {
		j.out.report(computed)
		reported = e.progress(j, reported, &api.Result{})
	}
	if want := []int{30, 60, 70, 100}; !slices.Equal(done, want) || reported != 100 {
		t.Errorf("reported %v, want %v", done, want)
	}
}

// TestQueueEstimate checks that cached tokens and the requests that run or wait before change the
// predicted time to the first token.
func TestQueueEstimate(t *testing.T) {
	o := tinyOptions(t)
	o.Parallel, o.Queue = 1, 8
	e := open(t, o)
	generate(t, e, api.Request{Prompt: tinyPrompt(1, 200), MaxTokens: 1}) // the table learns
	due := func(prompt []int32) time.Duration {
		j := &job{req: &api.Request{Prompt: prompt}}
		e.mu.Lock()
		e.lookUp(j)
		e.mu.Unlock()
		return e.queueEstimate(j).First
	}
	if again, fresh := due(tinyPrompt(1, 200)), due(tinyPrompt(4, 200)); again >= fresh || again <= 0 {
		t.Errorf("due in %v, and in %v where the prompt is cached", fresh, again)
	}
	ctx, stop := context.WithCancel(context.Background())
	var all sync.WaitGroup
	defer all.Wait()
	defer stop()
	running := make(chan struct{})
	for range 6 { // again and again, so that some are there whenever the next one comes
		all.Go(func() {
			for ctx.Err() == nil {
				_, _ = e.Generate(ctx, api.Request{Prompt: tinyPrompt(2, 20), IgnoreEOS: true}, func(api.Token) error {
					select {
					case running <- struct{}{}:
					default:
					}
					return nil
				})
			}
		})
	}
	<-running
	var q api.Queue
	ask := func() bool { // one of the six may just have ended, so that this one is next
		_, _ = e.Generate(ctx, api.Request{Prompt: tinyPrompt(3, 200), MaxTokens: 1,
			Queued: func(told api.Queue) { q = told }}, func(api.Token) error { return nil })
		return q.Wait > 0
	}
	if !soon(t, ask) || q.First <= q.Wait {
		t.Errorf("%+v of one that waits", q)
	}
}
