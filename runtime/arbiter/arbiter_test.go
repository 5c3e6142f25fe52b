package arbiter

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sandwich/runtime/api"
)

const ms = time.Millisecond

// simulated returns an arbiter with a clock that tests advance.
func simulated() (a *Arbiter, clock *time.Duration) {
	clock = new(time.Duration)
	return &Arbiter{now: func() time.Duration { return *clock }}, clock
}

// busy is a client that always has work: steps of a length in a class.
type busy struct {
	*Client
	class api.Class
	step  time.Duration
	gap   time.Duration // between two steps
	total time.Duration // with the cores
	max   time.Duration // longest wait
	since time.Duration // when it began to wait
}

// simulate lets clients with work share the cores until a time. Ops take 100 us. A client pauses
// after each step and where Preempted says so, and asks for the cores again after its gap.
func simulate(clients []*busy, a *Arbiter, clock *time.Duration, until time.Duration) {
	const op = 100 * time.Microsecond
	for _, c := range clients {
		c.since = *clock
		c.ask(c.class)
	}
	for *clock < until {
		var now *busy
		for _, c := range clients {
			if c.Client == a.holder {
				now = c
			}
		}
		began := *clock
		now.max = max(now.max, began-now.since)
		for done := op; ; done += op {
			*clock += op
			if done >= now.step || now.Preempted() {
				break
			}
		}
		now.total += *clock - began
		now.since = *clock
		now.Pause()
		if a.holder == now.Client {
			*clock += now.gap
		}
		now.ask(now.class)
	}
	a.waiting, a.holder = nil, nil
	a.queued.Store(0)
}

// TestShares checks how clients that always have work share the cores, by class and step.
func TestShares(t *testing.T) {
	const total = 10 * time.Second
	r, p := api.Reactive, api.Proactive
	for name, c := range map[string]struct {
		clients []*busy
		share   []float64       // minimum
		max     []time.Duration // longest wait
	}{
		"equal steps": {[]*busy{{class: r, step: ms}, {class: r, step: ms}}, []float64{.45, .45},
			[]time.Duration{2 * ms, 2 * ms}},
		"long and short": {[]*busy{{class: r, step: 500 * ms}, {class: r, step: ms}}, []float64{.45, .45},
			[]time.Duration{11 * ms, 11 * ms}},
		"proactive waits": {[]*busy{{class: r, step: 5 * ms}, {class: p, step: 500 * ms}}, []float64{.85, .07},
			[]time.Duration{3 * ms, 26 * ms}},
		"proactive waits for gaps": {[]*busy{{class: r, step: 4 * ms, gap: ms}, {class: p, step: 500 * ms}},
			[]float64{.7, .07}, []time.Duration{3 * ms, 26 * ms}},
		"proactive equals": {[]*busy{{class: p, step: 500 * ms}, {class: p, step: ms}}, []float64{.45, .45},
			[]time.Duration{11 * ms, 11 * ms}},
		"three": {[]*busy{{class: r, step: 3 * ms}, {class: r, step: 70 * ms}, {class: p, step: 90 * ms}},
			[]float64{.4, .4, .05}, []time.Duration{15 * ms, 15 * ms, 40 * ms}},
	} {
		a, clock := simulated()
		for _, x := range c.clients {
			x.Client = a.NewClient()
		}
		simulate(c.clients, a, clock, total)
		for i, x := range c.clients {
			if share := x.total.Seconds() / total.Seconds(); share < c.share[i] {
				t.Errorf("%s: client %d has a share of %.3f, want at least %.2f", name, i, share, c.share[i])
			}
			if x.max > c.max[i] {
				t.Errorf("%s: client %d waited %v, want at most %v", name, i, x.max, c.max[i])
			}
		}
	}
}

// TestPause checks which client has the cores after one pauses.
func TestPause(t *testing.T) {
	a, clock := simulated()
	one, two, load := a.NewClient(), a.NewClient(), a.NewClient()
	has := func(what string, want *Client) {
		t.Helper()
		if a.holder != want {
			t.Fatalf("%s: the wrong client has the cores", what)
		}
	}
	one.ask(api.Reactive)
	load.ask(api.Proactive)
	*clock += ms
	one.Pause()
	has("a load that is not due", one)
	one.ask(api.Reactive)
	has("the next forward", one)
	*clock += ms
	one.Pause()
	two.ask(api.Reactive)
	has("a client that has used the cores for a shorter time", two)
	one.Release()
	has("the client that paused had lost the cores", two)
	*clock += ms / 2
	two.Pause()
	one.ask(api.Reactive)
	has("a client that has used the cores for a longer time", two)
	two.ask(api.Reactive)
	*clock += guaranteedAfter
	two.Pause()
	has("a load that is due", load)
	*clock += ms
	load.Pause()
	has("a load pauses", one)
	one.Pause()
	load.ask(api.Proactive)
	two.ask(api.Proactive)
	has("loads that come later", one)
	one.Release()
	has("the client that paused has nothing left to run", load)
}

// TestIdleSavesNoTime checks that a client that was idle for long does not exclude the others when
// it has work again.
func TestIdleSavesNoTime(t *testing.T) {
	a, clock := simulated()
	active, idle := &busy{Client: a.NewClient(), step: ms}, &busy{Client: a.NewClient(), step: ms}
	simulate([]*busy{active, {Client: a.NewClient(), step: ms}}, a, clock, 10*time.Second)
	active.max = 0
	simulate([]*busy{active, idle}, a, clock, 11*time.Second)
	if active.max > 5*ms || idle.total < 400*ms {
		t.Errorf("the active client waited %v, the other one ran %v", active.max, idle.total)
	}
}

// TestExclusive checks that never two of many goroutines have the cores, and that all end.
func TestExclusive(t *testing.T) {
	a := New()
	var holders atomic.Int32
	var all sync.WaitGroup
	for i := range 8 {
		c := a.NewClient()
		all.Go(func() {
			rng := rand.New(rand.NewPCG(1, uint64(i)))
			for range 300 {
				c.Acquire(api.Class(rng.IntN(2)))
				for range rng.IntN(5) {
					if holders.Add(1) != 1 {
						t.Error("two clients have the cores")
					}
					holders.Add(-1)
					if c.Preempted() {
						break
					}
				}
				if rng.IntN(2) == 0 {
					c.Pause()
				} else {
					c.Release()
				}
			}
			c.Release()
		})
	}
	all.Wait()
	if a.holder != nil || len(a.waiting) != 0 || a.queued.Load() != 0 {
		t.Errorf("the cores are not free: holder %v, %d wait", a.holder, len(a.waiting))
	}
}
