package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"sandwich/plans/heuristic"
	"sandwich/runtime/api"
	"sandwich/runtime/arbiter"
	"sandwich/runtime/device/sim"
	"sandwich/runtime/mem"
	"sandwich/runtime/phase"
	"sandwich/runtime/pool/poolset"
	"sandwich/runtime/sched"
)

// alwaysPreempted is a client of an arbiter that is to release the cores after every op, and that
// checks that no other client has them meanwhile.
type alwaysPreempted struct {
	*arbiter.Client
	t       *testing.T
	holders *atomic.Int32 // clients with the cores
	grants  atomic.Int64
	runs    bool // since Acquire; neither Pause nor Release was called
}

func (c *alwaysPreempted) Acquire(class api.Class) {
	c.Client.Acquire(class)
	c.grants.Add(1)
	c.runs = true
	if c.holders.Add(1) != 1 {
		c.t.Error("two engines have the cores")
	}
}

func (c *alwaysPreempted) Pause() {
	c.end()
	c.Client.Pause()
}

func (c *alwaysPreempted) Release() {
	c.end()
	c.Client.Release()
}

// end counts the client out, unless it paused before.
func (c *alwaysPreempted) end() {
	if c.runs {
		c.runs = false
		c.holders.Add(-1)
	}
}

func (c *alwaysPreempted) Preempted() bool { return true }

// loads are the turns of background work of a client.
type loads struct{ *alwaysPreempted }

func (l loads) Acquire() { l.alwaysPreempted.Acquire(sched.Proactive) }

// TestSharedCores checks that three engines that give each other the cores after every op of a
// forward and every piece of a load produce the tokens of an engine that has the cores for itself:
// with threads of their own, and with those of one pool.
func TestSharedCores(t *testing.T) {
	for name, pools := range map[string]*poolset.Set{"own threads": nil, "one pool": {}} {
		t.Run(name, func(t *testing.T) { checkSharedCores(t, pools) })
		if pools != nil && len(pools.List()) != 0 {
			t.Errorf("pools at the end: %v", pools.List())
		}
	}
}

func checkSharedCores(t *testing.T, pools *poolset.Set) {
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
		newClient := func() *alwaysPreempted {
			return &alwaysPreempted{Client: a.NewClient(), t: t, holders: holders}
		}
		cores, load := newClient(), newClient()
		o.Cores, o.Turns, o.Pools = cores, loads{load}, pools
		e := open(t, o)
		if n := load.grants.Load(); n < 20 {
			t.Errorf("the load took the cores %d times", n)
		}
		for i := range want {
			all.Go(func() {
				if got := ask(e, i); got != want[i] {
					t.Errorf("request %d: %s, want %s", i, got, want[i])
				}
			})
		}
		t.Cleanup(func() {
			if n := cores.grants.Load(); n < 3*requests {
				t.Errorf("the forwards took the cores %d times", n)
			}
		})
	}
	if pools != nil {
		if list := pools.List(); len(list) != 1 || list[0].Users != 3 {
			t.Errorf("pools %v", list)
		}
	}
	all.Wait()
}

// TestSharedPoolOrder checks that engines on one pool can be closed and opened again in any order
// while others answer requests, and give the same tokens afterwards.
func TestSharedPoolOrder(t *testing.T) {
	const engines = 3
	pools, a := new(poolset.Set), arbiter.New()
	start := func() *Engine {
		o := tinyOptions(t)
		o.Cores, o.Turns, o.Pools = a.NewClient(), a.NewBackground(), pools
		return open(t, o)
	}
	request := api.Request{Prompt: tinyPrompt(3, 20), MaxTokens: 5, IgnoreEOS: true}
	var list [engines]*Engine
	for i := range list {
		list[i] = start()
	}
	want, _ := generate(t, list[0], request)
	for _, i := range []int{0, 2, 1, 1, 0, 2} {
		var all sync.WaitGroup
		for k, e := range list {
			if k != i {
				all.Go(func() {
					if got, _ := generate(t, e, request); !slices.Equal(got, want) {
						t.Errorf("engine %d: %v, want %v", k, got, want)
					}
				})
			}
		}
		list[i].Close()
		list[i] = start()
		all.Wait()
		if got, _ := generate(t, list[i], request); !slices.Equal(got, want) {
			t.Errorf("engine %d after a reload: %v, want %v", i, got, want)
		}
		if got := pools.List(); len(got) != 1 || got[0].Users != engines {
			t.Errorf("pools %v", got)
		}
	}
	before := mem.Total()
	for _, e := range list {
		e.Close()
	}
	if mem.Total() >= before || len(pools.List()) != 0 {
		t.Errorf("%d of %d bytes and pools %v are left", mem.Total(), before, pools.List())
	}
}

// TestSharedOverflow checks that the search for an overflow gives the cores to other engines after
// each op.
func TestSharedOverflow(t *testing.T) {
	skipUnderRace(t)
	f := pliable(t, "llama")
	set(t, f, "blk.1.ffn_up.weight", 3e38, everywhere)
	a := arbiter.New()
	o := optionsFor(t, f)
	cores := &alwaysPreempted{Client: a.NewClient(), t: t, holders: new(atomic.Int32)}
	o.Cores, o.Turns, o.Pools = cores, a.NewBackground(), new(poolset.Set)
	e := open(t, o)
	_, err := e.Generate(t.Context(), api.Request{Prompt: tinyPrompt(1, 1), MaxTokens: 4},
		func(api.Token) error { return nil })
	if err == nil || !strings.Contains(err.Error(), "in layer 1") {
		t.Error(err)
	}
	// A turn for each op of the forward, and of the search up to layer 1.
	if n := int(cores.grants.Load()); n <= e.runner.Ops() {
		t.Errorf("the engine had the cores %d times, the forward has %d ops", n, e.runner.Ops())
	}
}

// TestSharedDevice checks that engines that share cores, workers and a device produce the tokens of
// engines on the cores, whichever phase the device runs.
func TestSharedDevice(t *testing.T) {
	list := deviceRequests(4)
	if raceEnabled {
		list = list[:1] // race builds interpret device programs slowly
	}
	want := allTokens(t, open(t, deviceOptions(t)), list)
	dev := sim.New(sim.Config{})
	t.Cleanup(func() { dev.Close() })
	a, pools, holders := arbiter.New(), new(poolset.Set), new(atomic.Int32)
	var all sync.WaitGroup
	for _, p := range phase.All {
		o := deviceOptions(t)
		o.Accelerator = DeviceOptions{Device: dev, Name: "sim", Phases: []phase.Phase{p}, Divide: true}
		o.Cores = &alwaysPreempted{Client: a.NewClient(), t: t, holders: holders}
		o.Turns, o.Pools = loads{&alwaysPreempted{Client: a.NewClient(), t: t, holders: holders}}, pools
		e := open(t, o)
		all.Go(func() { sameTokens(t, allTokens(t, e, list), want) })
	}
	all.Wait()
}

// TestSharedRanks checks that engines with two ranks each share a pool, with barriers and flags of
// their own, while engines are opened and closed.
func TestSharedRanks(t *testing.T) {
	f := pliable(t, "llama")
	ranked := optionsFor(t, f)
	plan, err := planFor(t, f, heuristic.Options{Service: crews(1, 1)})
	if err != nil {
		t.Fatal(err)
	}
	ranked.Plan, ranked.Unpinned = plan, true
	request := api.Request{Prompt: tinyPrompt(3, 20), MaxTokens: 5, IgnoreEOS: true}
	want, _ := generate(t, open(t, ranked), request)
	a, pools, holders := arbiter.New(), new(poolset.Set), new(atomic.Int32)
	start := func(o Options) *Engine {
		o.Cores = &alwaysPreempted{Client: a.NewClient(), t: t, holders: holders}
		o.Turns, o.Pools = loads{&alwaysPreempted{Client: a.NewClient(), t: t, holders: holders}}, pools
		return open(t, o)
	}
	list := []*Engine{start(ranked), start(ranked)}
	for range 3 {
		var all sync.WaitGroup
		for _, e := range list {
			all.Go(func() {
				if got, _ := generate(t, e, request); !slices.Equal(got, want) {
					t.Errorf("tokens %v, alone %v", got, want)
				}
			})
		}
		list = append(list, start(ranked))
		all.Wait()
		list[0].Close()
		list = list[1:]
		if got := pools.List(); len(got) != 1 || got[0].Users != 2 {
			t.Errorf("pools %v", got)
		}
	}
}

// failing is a client of an arbiter that panics on a worker during a forward.
type failing struct{ *arbiter.Client }

func (failing) Preempted() bool { panic("during a forward") }

// TestSharedFailure checks that an engine whose forward panics gives the cores and the workers to
// the others.
func TestSharedFailure(t *testing.T) {
	a, pools := arbiter.New(), new(poolset.Set)
	start := func(c Cores) *Engine {
		o := tinyOptions(t)
		o.Cores, o.Turns, o.Pools = c, a.NewBackground(), pools
		return open(t, o)
	}
	request := api.Request{Prompt: tinyPrompt(3, 20), MaxTokens: 5, IgnoreEOS: true}
	sound := start(a.NewClient())
	want, _ := generate(t, sound, request)
	broken := start(failing{a.NewClient()})
	var internal *InternalError
	_, err := broken.Generate(t.Context(), request, func(api.Token) error { return nil })
	if !errors.As(err, &internal) || internal.Value != "during a forward" {
		t.Errorf("the engine that fails: %v", err)
	}
	for range 2 {
		if got, _ := generate(t, sound, request); !slices.Equal(got, want) {
			t.Errorf("tokens %v, before %v", got, want)
		}
		broken.Close()
	}
}
