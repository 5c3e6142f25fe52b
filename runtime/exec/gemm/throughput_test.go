package gemm

import (
	"math"
	"testing"
	"time"

	"sandwich/runtime/pool"
)

// TestChunks checks that an assignment has as many chunks as slices, but not more than a worker can
// count.
func TestChunks(t *testing.T) {
	if n := new(assignment).chunks(nil, 0); n != 0 {
		t.Errorf("%d chunks of an assignment of no products", n)
	}
	const limit = pool.MaxAssigned
	for _, c := range []struct{ slices, each int }{{0, 1}, {1, 1}, {limit, 1}, {limit + 1, 2}, {2 * limit, 2}} {
		if got := slicesOfChunk(c.slices); got != c.each {
			t.Errorf("%d slices of a chunk of %d, want %d", got, c.slices, c.each)
		}
	}
}

// TestThroughput checks that rates follow the tallies, ignore small changes, and are forgotten
// without measurements.
func TestThroughput(t *testing.T) {
	p := newThroughput(1, 1, []int{0, 1})
	meter := meterOf(0, 512, false)
	say := func(worker int, rate float64) {
		l := &p.tallies[meter*2+worker]
		l.busy.Add(1e7)
		l.elements.Add(int64(rate * 1e-2))
		l.best.Store(int64(rate))
		l.n.Add(minFirst)
		p.touched[meter].Store(true)
	}
	look := func() []float64 {
		p.updated -= updateEvery
		for i := range p.lastSeen {
			p.lastSeen[i] -= updateEvery
		}
		p.update()
		return p.views[p.last].rate[meter*2:][:2]
	}
	near := func(when string, want ...float64) {
		t.Helper()
		for i, r := range p.views[p.last].rate[meter*2:][:2] {
			if math.Abs(r-want[i]) > 0.02*want[i] {
				t.Errorf("%s: the rate of worker %d is %g, want %g", when, i, r, want[i])
			}
		}
	}
	say(0, 2e9)
	if r := look(); r[0] == 0 || r[1] != 0 {
		t.Errorf("one of two workers has a rate: %v", r)
	}
	say(0, 2e9)
	say(1, 1e9)
	look()
	near("measured", 2e9, 1e9)
	version := p.views[p.last].version
	for range 20 {
		say(0, 2.02e9)
		say(1, 1e9)
		look()
	}
	if p.views[p.last].version != version {
		t.Error("a change of one in a hundred has moved the rates")
	}
	for range 60 {
		say(0, 2e9)
		say(1, 0.5e9)
		look()
	}
	near("slower", 2e9, 0.5e9)
	for i := range p.lastSeen {
		p.lastSeen[i] -= forgotten
	}
	say(0, 2e9)
	if r := look(); r[1] != 0 {
		t.Errorf("a worker without work keeps the rate %g", r[1])
	}
}

// TestFirstRate checks that a first chunk that was delayed does not determine the rate, and that a
// worker with one or two chunks has none.
func TestFirstRate(t *testing.T) {
	p, l := newThroughput(1, 1, []int{0, 1}), chunkLog{}
	meter := meterOf(0, 512, false)
	l.p, l.meter = p, meter
	l.chunk(0, 100*time.Microsecond)
	l.chunk(1, 10*time.Millisecond)
	l.chunk(0, 100*time.Microsecond)
	l.chunk(0, 100*time.Microsecond)
	if r := l.rates(); r[0] == 0 || r[1] != 0 {
		t.Errorf("after three chunks and one: %v", r)
	}
	l.chunk(1, 100*time.Microsecond)
	l.chunk(1, 120*time.Microsecond)
	if r := l.rates(); math.Abs(r[1]/r[0]-1) > 0.01 {
		t.Errorf("after a delayed chunk equal workers have the rates %v", r)
	}
}

// chunkLog adds chunks of 1,000 elements to a throughput model.
type chunkLog struct {
	p     *Throughput
	meter int
}

func (l *chunkLog) chunk(worker int, took time.Duration) {
	tally := &l.p.tallies[l.meter*l.p.workers+worker]
	tally.add(1000, int64(took))
	l.p.touched[l.meter].Store(true)
}

func (l *chunkLog) rates() []float64 {
	l.p.updated -= updateEvery
	l.p.update()
	return l.p.views[l.p.last].rate[l.meter*2:][:2]
}
