package engine

import (
	"slices"
	"sync"
	"testing"
	"time"

	"sandwich/runtime/api"
	"sandwich/runtime/pool"
	"sandwich/runtime/sched"
)

// jump lets the clock of an engine jump, as that of a machine that slept does.
func (e *Engine) jump(by time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.begin = e.begin.Add(-by)
}

// TestClockJumps checks that requests of both classes get their tokens while the engine's clock
// jumps by an hour, forward or back, and that proactive requests age as before after a jump back.
func TestClockJumps(t *testing.T) {
	o := tinyOptions(t)
	o.Queue, o.Aging = 100, time.Millisecond
	e := open(t, o)
	want, _ := generate(t, e, api.Request{Prompt: tinyPrompt(1, 90), MaxTokens: 20, IgnoreEOS: true})
	for _, by := range []time.Duration{-time.Hour, time.Hour, -time.Hour} {
		before := e.Stats().Scheduler.Promotions
		jump := sync.OnceFunc(func() { e.jump(by) })
		if !soon(t, func() bool { // a request ages if it waits, which depends on the speed of the clients
			clockJump(t, e, jump, want)
			return e.Stats().Scheduler.Promotions > before || t.Failed()
		}) {
			t.Errorf("%s: no request aged", by)
		}
	}
	checkIdleSoon(t, e)
}

// clockJump runs requests of both classes, calls jump meanwhile and compares the tokens.
func clockJump(t *testing.T, e *Engine, jump func(), want []int32) {
	var all sync.WaitGroup
	for i := range 24 {
		all.Go(func() {
			if i == 12 {
				jump()
			}
			class := api.Class(i % 2)
			req := api.Request{Prompt: tinyPrompt(1, 90), MaxTokens: 20, IgnoreEOS: true, Class: class}
			got, _ := generate(t, e, req)
			if !slices.Equal(got, want) {
				t.Errorf("%s request %d got %v, want %v", class, i, got, want)
			}
		})
	}
	all.Wait()
}

// TestHangUpWhileEvicted checks that a request that is cancelled while it pauses outside the batch
// leaves no state and does not change the tokens of others.
func TestHangUpWhileEvicted(t *testing.T) {
	o := tinyOptions(t)
	o.MixedCap = 1
	urgent := api.Request{Prompt: tinyPrompt(2, 40), MaxTokens: 6, IgnoreEOS: true}
	background := api.Request{Prompt: tinyPrompt(1, 20), MaxTokens: 40, IgnoreEOS: true, Class: sched.Proactive}
	want, _ := generate(t, open(t, o), urgent)
	e := byHand(t, o)
	e.runner.Lead(func(l *pool.Leader) {
		slow := e.enter(t, background)
		e.forward(l) // its prompt
		quick := e.enter(t, urgent)
		for e.Stats().Scheduler.Evictions == 0 {
			if e.forward(l) == nil {
				t.Error("no request was evicted")
				return
			}
		}
		e.cancel(slow)
		for act := e.forward(l); act != nil; act = e.forward(l) {
			if slices.ContainsFunc(act.Rows, func(r sched.Rows) bool { return r.ID == slow.id }) {
				t.Errorf("it runs on: %+v", act)
			}
		}
		if got, _ := quick.drained(); !slices.Equal(got, want) {
			t.Errorf("the other request: %v, want %v", got, want)
		}
	})
	checkIdle(t, e)
}
