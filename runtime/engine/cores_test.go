package engine

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"sandwich/runtime/api"
	"sandwich/runtime/arbiter"
	"sandwich/runtime/sched"
)

// alwaysPreempted is a client of an arbiter that is to release the cores after every op, and that
// checks that no other client has them meanwhile.
type alwaysPreempted struct {
	*arbiter.Client
	t       *testing.T
	holders *atomic.Int32 // clients with the cores
	grants  atomic.Int64
}

func (c *alwaysPreempted) Acquire(class api.Class) {
	c.Client.Acquire(class)
	c.grants.Add(1)
	if c.holders.Add(1) != 1 {
		c.t.Error("two engines have the cores")
	}
}

func (c *alwaysPreempted) Release() {
	c.holders.Add(-1)
	c.Client.Release()
}

func (c *alwaysPreempted) Preempted() bool { return true }

// TestSharedCores checks that three engines that give each other the cores after every op of a
// forward and every part of a load produce the tokens of an engine that has the cores for itself.
func TestSharedCores(t *testing.T) {
	request := func(i int) api.Request {
		r := api.Request{Prompt: tinyPrompt(uint64(i), 3+11*i), MaxTokens: 6, IgnoreEOS: true}
		if i%2 == 1 {
			r.Class = sched.Proactive
		}
		if i%3 == 2 {
			r.Sampling = api.Sampling{Temperature: 0.9, TopK: 50, Seed: uint64(i)}
		}
		return r
	}
	ask := func(e *Engine, i int) string {
		var ids []int32
		res, err := e.Generate(context.Background(), request(i), func(tok api.Token) error {
			ids = append(ids, tok.ID)
			return nil
		})
		return fmt.Sprint(ids, res.Finish, err)
	}
	const requests = 6
	var want [requests]string
	alone := open(t, tinyOptions(t))
	for i := range want {
		want[i] = ask(alone, i)
	}
	a, holders := arbiter.New(), new(atomic.Int32)
	var all sync.WaitGroup
	for range 3 {
		o := tinyOptions(t)
		cores := &alwaysPreempted{Client: a.NewClient(), t: t, holders: holders}
		o.Cores = cores
		e := open(t, o)
		loaded := cores.grants.Load()
		if loaded < 2 {
			t.Errorf("the load took the cores %d times", loaded)
		}
		for i := range want {
			all.Go(func() {
				if got := ask(e, i); got != want[i] {
					t.Errorf("request %d: %s, want %s", i, got, want[i])
				}
			})
		}
		t.Cleanup(func() {
			if n := cores.grants.Load() - loaded; n < 3*requests {
				t.Errorf("the forwards took the cores %d times", n)
			}
		})
	}
	all.Wait()
}
