package sched

import (
	"math/rand/v2"
	"testing"
	"time"
)

// TestRetryAfter overloads the scheduler with requests of both classes for minutes, under every
// policy, with bursts and a clock that jumps by an hour. RetryAfter is within a factor of two of
// the time after which a place in the queue is free, and for a second refusal, a second place.
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
				c.ends, c.open = c.now, [2][]refusal{} // no request waited in that hour
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

// crowd is a driver that records RetryAfter of rejections and the real times.
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

// serve lands forwards until a time.
func (c *crowd) serve(t *testing.T, until time.Duration) {
	for c.flight != nil && c.ends <= until {
		c.now = c.ends
		c.land()
		c.note(t)
	}
	c.now = until
}

// note steps and settles the rejections whose places became free.
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

// TestProactiveWaitsForTheReactiveQueue checks that the estimate for proactive requests includes
// the reactive queue, even if they departed fast before.
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
		if told, minimum := d.retry, 3*time.Second; name == DefaultPolicy && told < minimum || told > 2*minimum {
			t.Errorf("%s: refused for %s", name, told)
		}
	}
}
