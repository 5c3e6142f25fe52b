package sched

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// priority is that of the next request.
func (d *driver) priority() int32 {
	if d.ranks == nil {
		return 0
	}
	return int32(d.ranks.IntN(4)) - 2
}

// checkPlaces asserts that those who wait have the places 0 to n-1, and inside a class by
// priority, where the policy heeds it, and then by arrival, who has aged first.
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

// TestPriority: under a policy that heeds priorities requests of one class that came together are
// begun by priority, then by arrival; a later one goes before those that wait and are less urgent;
// the others take them as they came. The place that each one hears is that at which it is begun.
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

// TestPrioritiesStarveNobody: behind a stream of more urgent requests of its own class that never
// ends, a request goes on by arrival once it has aged.
func TestPrioritiesStarveNobody(t *testing.T) {
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
