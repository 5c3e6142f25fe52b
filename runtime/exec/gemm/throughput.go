package gemm

import (
	"math"
	"math/bits"
	"slices"
	"sync/atomic"
	"time"

	"sandwich/roofline"
	"sandwich/runtime/exec/internal/raw"
	"sandwich/runtime/pool"
)

// Throughput is a model of how fast each heterogeneous worker recently computed products of each
// weight shape, by which products are divided (SMEPilot section 4.4, where a profiler measures
// once, offline). Workers add to tallies of their own. Worker 0 turns them into rates from time to
// time, after an op, and all workers read the new rates after the barrier that follows. Nothing is
// assumed: products without a rate are handed out in chunks.
//
// The methods Begin, Join, Update and Read accept a nil model, of workers that are all alike.
type Throughput struct {
	workers  int
	kindOf   []int // by worker index
	began    time.Time
	tallies  []tally         // [meters][workers]
	touched  []atomic.Bool   // by meter: a worker added to it since the last update
	seen     []tally         // the tallies at the last update
	mean     []float64       // [meters][workers] rates of about the last second
	spread   []float64       // [meters][workers] relative deviation of single chunks from their expected time, 0 to 1
	measured []time.Duration // [meters][workers] busy time that mean rests on
	lastSeen []time.Duration
	updated  time.Duration
	views    [3]rateView
	last     int    // the newest view
	first    int    // the view at the start of a run, also for workers that join it late
	shown    [2]int // the view from a step on, by the parity of the step
	own      []workerView
}

// tally is the total of what a worker did for a meter.
type tally struct {
	busy     atomic.Int64 // nanoseconds
	elements atomic.Int64 // of C
	off      atomic.Int64 // nanoseconds by which chunks deviated from their expected times
	best     atomic.Int64 // elements per second of the fastest chunk since the last update
	n        atomic.Int64 // chunks since the last update
	_        [raw.CacheLine - 40]byte
}

// rateView is a set of rates that all workers use at the same step.
type rateView struct {
	version uint64
	rate    []float64 // [meters][workers] elements per second; 0: unknown
	spread  []float64 // by meter: the largest spread of a worker
}

// workerView is the state of one worker, which no other worker uses.
type workerView struct {
	view        *rateView
	assignments []assignment    // by op
	sides       []roofline.Side // of the last division
	parts       []int           // of the last division
	products    []product       // of the op at hand
	_           [raw.CacheLine]byte
}

const (
	updateEvery = 40 * time.Millisecond
	rateWindow  = 400 * time.Millisecond // over which older measurements fade
	minBusy     = 200 * time.Microsecond // busy time of all workers for a first rate
	minFirst    = 3                      // chunks of a worker for its first rate
	forgotten   = time.Second            // after which the rate of a worker without measurements is dropped
	hysteresis  = 0.03                   // relative change of a rate that is ignored
	moved       = 0.05                   // change of a spread that is shown
	unsteady    = 0.35                   // spread from which a division is expected to end later
)

// meterRanges is the number of ranges of M with rates of their own: powers of two, once for plain
// and once for gated products.
const meterRanges = 2 * 22

// newThroughput returns a model for so many weight shapes and ops, and workers of the given kinds.
func newThroughput(shapes, ops int, kindOf []int) *Throughput {
	meters, workers := shapes*meterRanges, len(kindOf)
	p := &Throughput{workers: workers, kindOf: kindOf, began: time.Now(), tallies: make([]tally, meters*workers),
		touched: make([]atomic.Bool, meters), seen: make([]tally, meters*workers),
		mean: make([]float64, meters*workers), spread: make([]float64, meters*workers),
		lastSeen: make([]time.Duration, meters*workers), measured: make([]time.Duration, meters*workers),
		own: make([]workerView, workers)}
	for i := range p.views {
		p.views[i] = rateView{rate: make([]float64, meters*workers), spread: make([]float64, meters)}
	}
	for i := range p.own {
		p.own[i] = workerView{assignments: make([]assignment, ops), sides: make([]roofline.Side, workers),
			parts: make([]int, workers)}
	}
	return p
}

// meterOf returns the meter of products of m rows of a shape.
func meterOf(shape, m int, gated bool) int {
	at := shape*meterRanges + 2*min(bits.Len(uint(m)), meterRanges/2-1)
	if gated {
		at++
	}
	return at
}

// Begin updates the rates before the workers start.
func (p *Throughput) Begin() {
	if p != nil {
		p.update()
		p.first, p.shown = p.last, [2]int{p.last, p.last}
	}
}

// Join makes a worker use the rates at the start of a run.
func (p *Throughput) Join(w *pool.Worker) {
	if p != nil {
		p.own[w.Index()].view = &p.views[p.first]
	}
}

// Update updates the rates after an op, before step `next`. Worker 0 calls it. Unless all workers
// meet at a barrier after each op, rates do not change during a run.
func (p *Throughput) Update(next int, allWorkers bool) {
	if p != nil && allWorkers {
		p.update()
		p.shown[next&1] = p.last
	}
}

// Read makes a worker use the rates of a step.
func (p *Throughput) Read(w *pool.Worker, next int) {
	if p != nil {
		p.own[w.Index()].view = &p.views[p.shown[next&1]]
	}
}

// Override replaces all rates and spreads by the results of two functions. Tests use it to draw
// divisions. Elements per second; 0: unknown.
func (p *Throughput) Override(rate, spread func() float64) {
	v := &p.views[p.last]
	v.version += 1000
	for i := range v.rate {
		v.rate[i] = rate()
	}
	for i := range v.spread {
		v.spread[i] = spread()
	}
	copy(p.mean, v.rate)
}

// add records a chunk of a product: its elements and when it began.
func (p *Throughput) add(w *pool.Worker, meter, elements int, began time.Time) {
	took := int64(time.Since(began))
	l := &p.tallies[meter*p.workers+w.Index()]
	if rate := p.own[w.Index()].view.rate[meter*p.workers+w.Index()]; rate > 0 {
		off := took - int64(1e9*float64(elements)/rate)
		l.off.Add(max(off, -off))
	}
	l.add(elements, took)
	if !p.touched[meter].Load() {
		p.touched[meter].Store(true)
	}
}

// add records a chunk of so many elements that took so many nanoseconds.
func (l *tally) add(elements int, took int64) {
	if rate := int64(1e9 * float64(elements) / float64(max(took, 1))); rate > l.best.Load() {
		l.best.Store(rate)
	}
	l.n.Add(1)
	l.elements.Add(int64(elements))
	l.busy.Add(took)
}

// update makes new rates if updateEvery has passed. It allocates nothing.
func (p *Throughput) update() {
	now := time.Since(p.began)
	if now-p.updated < updateEvery && p.views[p.last].version > 0 {
		return
	}
	p.updated = now
	next := -1
	for meter := range p.touched {
		if !p.touched[meter].Load() || !p.measure(meter, now) {
			continue
		}
		p.touched[meter].Store(false)
		if next < 0 {
			if !p.differs(meter) {
				continue
			}
			next = (p.last + 1) % len(p.views)
			copy(p.views[next].rate, p.views[p.last].rate)
			copy(p.views[next].spread, p.views[p.last].spread)
			p.views[next].version = p.views[p.last].version + 1
		}
		p.publish(meter, &p.views[next])
	}
	if next >= 0 {
		p.last = next
	}
}

// measure adds what the tallies of a meter gained since the last update, if that is enough.
func (p *Throughput) measure(meter int, now time.Duration) bool {
	first := meter * p.workers
	busy := int64(0)
	for i := first; i < first+p.workers; i++ {
		busy += p.tallies[i].busy.Load() - p.seen[i].busy.Load()
	}
	if busy < int64(minBusy) {
		return false
	}
	for i := first; i < first+p.workers; i++ {
		l, s := &p.tallies[i], &p.seen[i]
		busy, elements, off := l.busy.Load(), l.elements.Load(), l.off.Load()
		took, did, missed := busy-s.busy.Load(), elements-s.elements.Load(), off-s.off.Load()
		if p.mean[i] == 0 && did > 0 && l.n.Load() < minFirst {
			continue
		}
		best := l.best.Swap(0)
		l.n.Store(0)
		s.busy.Store(busy)
		s.elements.Store(elements)
		s.off.Store(off)
		if took <= 0 || did <= 0 {
			if p.mean[i] > 0 && now-p.lastSeen[i] > forgotten {
				p.mean[i], p.measured[i] = 0, 0 // it may have become faster: measure it again
			}
			continue
		}
		p.blend(i, now, time.Duration(took), 1e9*float64(did)/float64(took), float64(best),
			math.Min(1, float64(missed)/float64(took)))
	}
	return true
}

// blend adds a rate of so much busy time, the rate of the fastest chunk and the spread to mean i.
// The first chunks touch cold memory, and a worker with a rate that is far too low would get no
// part, so that its rate would never be corrected. So the first rate is that of the fastest chunk.
func (p *Throughput) blend(i int, now, took time.Duration, rate, best, spread float64) {
	p.measured[i] += took
	if p.mean[i] == 0 {
		p.mean[i], p.spread[i] = best, 0
	} else {
		weight := max(1-math.Exp(-float64(now-p.lastSeen[i])/float64(rateWindow)), float64(took)/float64(p.measured[i]))
		p.mean[i] += weight * (rate - p.mean[i])
		p.spread[i] += weight * (spread - p.spread[i])
	}
	p.lastSeen[i] = now
}

// differs reports whether the rates of a meter, relative to each other, differ from those shown by
// more than hysteresis.
func (p *Throughput) differs(meter int) bool {
	first := meter * p.workers
	v := &p.views[p.last]
	smallest, largest := math.Inf(1), 0.0
	for i := first; i < first+p.workers; i++ {
		if (p.mean[i] == 0) != (v.rate[i] == 0) {
			return true
		}
		if p.mean[i] > 0 {
			smallest, largest = math.Min(smallest, p.mean[i]/v.rate[i]), math.Max(largest, p.mean[i]/v.rate[i])
		}
	}
	return largest > smallest*(1+hysteresis) || largest > 1.2 || smallest < 1/1.2 ||
		math.Abs(p.worst(first)-v.spread[meter]) > moved
}

// worst returns the largest spread of the workers of a meter, whose tallies begin at first.
func (p *Throughput) worst(first int) float64 { return slices.Max(p.spread[first : first+p.workers]) }

// publish writes the rates of a meter into a view.
func (p *Throughput) publish(meter int, v *rateView) {
	first := meter * p.workers
	copy(v.rate[first:first+p.workers], p.mean[first:])
	v.spread[meter] = p.worst(first)
}
