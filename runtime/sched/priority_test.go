package sched

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// priority returns the priority of the next request.
func (d *driver) priority() int32 {
	if d.ranks == nil {
		return 0
	}
	return int32(d.ranks.IntN(4)) - 2
}

// checkPlaces checks that waiting requests have the places 0 to n-1, ordered within a class by
// priority, if the policy uses it, then by arrival, aged ones first.
func (d *driver) checkPlaces() error {
	var places []int
	for _, q := range d.s.queue {
		for i, r := range q {
			at, _ := d.s.Place(r.id)
			places = append(places, at)
			if i == 0 {
				continue
			}
			o, want := q[i-1], 0
			if o.promoted != r.promoted {
				continue // the one of them that has aged goes with the first
			}
			if d.sandwich() || d.cfg.Policy == "preempt" {
				want = cmp.Compare(o.priority, r.priority)
			}
			if r.promoted {
				want = 0
			}
			if before, _ := d.s.Place(o.id); before >= at || cmp.Or(want, cmp.Compare(o.order, r.order)) > 0 {
				return fmt.Errorf("request %d of priority %d has place %d, and %d of %d place %d", o.id, o.priority,
					before, r.id, r.priority, at)
			}
		}
	}
	slices.Sort(places)
	for i, at := range places {
		if i != at {
			return fmt.Errorf("those who wait have the places %v", places)
		}
	}
	return nil
}

// TestPriority checks that under a policy with priorities requests of one class start by priority,
// then by arrival, that a later request precedes waiting ones of a worse priority, and that other
// policies start them by arrival. The reported place is that at which a request starts.
func TestPriority(t *testing.T) {
	for _, name := range []string{DefaultPolicy, "preempt", "fcfs", "share"} {
		d := testDriver(Config{Blocks: 100, MaxRunning: 1, Queue: 50, Chunk: 64, Policy: name})
		for i, p := range []int32{5, 9, 1, 5, 1, 7} {
			id := ID(i + 1)
			d.arrive(id, Proactive, prompt(id, 20), 2)
			d.events[len(d.events)-1].Priority = p
		}
		want := []ID{3, 5, 1, 4, 6, 2}
		if name == "fcfs" || name == "share" {
			want = []ID{1, 2, 3, 4, 5, 6}
		}
		if err := d.step(); err != nil {
			t.Fatal(err)
		}
		heard := map[ID]int{}
		for _, id := range want[1:] {
			heard[id], _ = d.s.Place(id)
		}
		got := []ID{d.flight.ID}
		for _, a := range d.run(t, 40) {
			if a.Kind == Prefill {
				got = append(got, a.ID)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: begun in the order %v, want %v", name, got, want)
		}
		for i, id := range want[1:] {
			if heard[id] != i {
				t.Errorf("%s: request %d heard of %d before it, there were %d", name, id, heard[id], i)
			}
		}
	}
}

// TestPrioritiesDoNotStarve checks that a request that has aged precedes an endless stream of
// requests of its class with a better priority.
func TestPrioritiesDoNotStarve(t *testing.T) {
	for _, class := range []Class{Reactive, Proactive} {
		for _, name := range []string{DefaultPolicy, "preempt"} {
			cfg := Config{Blocks: 100, MaxRunning: 2, Queue: 8, Chunk: 64, Policy: name, Aging: 50 * time.Millisecond}
			d := testDriver(cfg)
			rng, next := rand.New(rand.NewPCG(1, 5)), ID(2)
			for id := ID(1); d.live[1] != nil || id == 1; id = 2 {
				for waiting := d.stats().Waiting[class]; waiting < 5; waiting++ {
					d.arrive(next, class, prompt(next, 30), 3)
					d.events[len(d.events)-1].Priority = -rng.Int32N(1 << 20)
					next++
				}
				if id == 1 {
					d.arrive(1, class, prompt(1, 30), 3)
					d.events[len(d.events)-1].Priority = 9
				}
				if err := d.step(); err != nil {
					t.Fatal(err)
				}
				d.run(t, 1)
				if d.now > time.Second {
					t.Fatalf("%s: a %s request of low priority waits for ever", name, class)
				}
			}
			if d.now < cfg.Aging {
				t.Errorf("%s: a %s request of low priority was done at %s, before it aged", name, class, d.now)
			}
		}
	}
}
