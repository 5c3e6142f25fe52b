package sched

import (
	"math/rand/v2"
	"testing"
	"time"
)

// TestRetryAfter: a service with more requests of both classes than it can bear, for minutes: the
// times that its refusals name are, within a factor of two, those after which a place of the queue
// is free, and for the second one of a crowd a second place. Under every policy, bursts and a clock
// that jumps by an hour included.
func TestRetryAfter(t *testing.T) {
	for _, name := range Policies() {
		if name == "eldest" {
			continue // decodes nothing while prompts come
		}
		c := crowd{driver: testDriver(Config{Blocks: 400, MaxRunning: 4, Queue: 30, Chunk: 256, Policy: name})}
		c.cost = func(a *Action) time.Duration {
			if a.Kind == Decode {
				return time.Duration(60+5*len(a.Rows)) * time.Millisecond
			}
			return time.Duration(a.N) * 2 * time.Millisecond
		}
		rng := rand.New(rand.NewPCG(3, 3))
		for c.now < 80*time.Minute {
			if c.now > 10*time.Minute && c.now < time.Hour {
				c.now += time.Hour
				c.ends, c.open = c.now, [2][]refusal{} // that hour nobody waited
			}
			for range 1 + 60*(rng.IntN(400)/399) {
				c.come(t, Class(rng.IntN(2)), rng)
			}
			c.serve(t, c.now+time.Duration(rng.IntN(1600))*time.Millisecond)
		}
		for class := range c.told {
			ratio := c.told[class].Seconds() / c.took[class].Seconds()
			if !(ratio > 0.5 && ratio < 2) || c.refused[class] < 50 {
				t.Errorf("%s: %d refusals of %s requests name %.2f times what it takes", name, c.refused[class],
					Class(class), ratio)
			}
		}
	}
}

// crowd is a driver that notes what refusals name, and what it takes.
type crowd struct {
	*driver
	next       ID
	free       [2]int // places that were given back
	open       [2][]refusal
	told, took [2]time.Duration
	refused    [2]int
}

type refusal struct {
	at, after time.Duration
	free      int // places that are given back by the time meant
}

func (c *crowd) come(t *testing.T, class Class, rng *rand.Rand) {
	c.next++
	words := make([]int32, 20+rng.IntN(400))
	words[0] = int32(c.next)
	c.arrive(c.next, class, words, 5+rng.IntN(100))
	c.note(t)
	if c.sinceEnd[c.next] == "rejected" {
		places := min(c.s.departures[class].refused, c.cfg.Queue+1)
		c.open[class] = append(c.open[class], refusal{c.now, c.retry, c.free[class] + places})
	}
}

// serve lets forwards end until then.
func (c *crowd) serve(t *testing.T, until time.Duration) {
	for c.flight != nil && c.ends <= until {
		c.now = c.ends
		c.land()
		c.note(t)
	}
	c.now = until
}

// note steps, and settles the refusals whose places were given back.
func (c *crowd) note(t *testing.T) {
	before := c.s.fresh
	events := c.events
	if err := c.step(); err != nil {
		t.Fatal(err)
	}
	for _, e := range events {
		if e.Kind == Arrive && c.sinceEnd[e.ID] != "rejected" {
			before[e.Class]++
		}
	}
	for class := range c.free {
		c.free[class] += before[class] - c.s.fresh[class]
		left := c.open[class][:0]
		for _, r := range c.open[class] {
			switch {
			case c.free[class] < r.free:
				left = append(left, r)
			case r.after > time.Second && c.now > 5*time.Minute:
				c.told[class], c.took[class] = c.told[class]+r.after, c.took[class]+c.now-r.at
				c.refused[class]++
			}
		}
		c.open[class] = left
	}
}

// TestProactiveWaitsForTheReactiveQueue: proactive requests that left their queue fast, as long as
// no reactive ones came, are told to come again when those that wait now have gone.
func TestProactiveWaitsForTheReactiveQueue(t *testing.T) {
	for _, name := range []string{DefaultPolicy, "fcfs"} {
		d := testDriver(Config{Blocks: 400, MaxRunning: 1, Queue: 30, Chunk: 256, Policy: name})
		d.cost = func(*Action) time.Duration { return 100 * time.Millisecond }
		id := ID(0)
		burst := func(class Class, n int) {
			for range n {
				id++
				d.arrive(id, class, prompt(id, 10), 1)
			}
			if err := d.step(); err != nil {
				t.Fatal(err)
			}
		}
		burst(Proactive, 20)
		d.run(t, 50)
		burst(Reactive, 30)
		burst(Proactive, 40)
		// 30 reactive ones and the first proactive one, a tenth of a second each; fcfs is blind
		if told, least := d.retry, 3*time.Second; name == DefaultPolicy && told < least || told > 2*least {
			t.Errorf("%s: refused for %s", name, told)
		}
	}
}
