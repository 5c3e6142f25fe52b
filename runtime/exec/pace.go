package exec

import (
	"math"
	"math/bits"
	"slices"
	"sync/atomic"
	"time"

	"sandwich/roofline"
	"sandwich/runtime/pool"
)

// A pacer knows how fast each of unlike workers has lately computed the products of each shape, so
// that they can be divided by that (SMEPilot section 4.4; there a profiler measures once, offline).
// Workers add what they did to lanes of their own; worker 0 makes rates of it now and then, behind
// an op, and all of them read the new ones past the barrier that follows. Nothing is assumed before
// it is measured: what has no rate is handed out in chunks.
type pacer struct {
	workers int
	classOf []int // by worker index
	began   time.Time
	lanes   []lane          // [meters][workers]
	touched []atomic.Bool   // by meter: somebody added to it since the last look
	seen    []lane          // what the lanes were at the last look
	mean    []float64       // [meters][workers] rates of about the last second
	spread  []float64       // [meters][workers] of it, how far single pieces were from what was expected, 0 to 1
	heard   []time.Duration // [meters][workers] busy time behind mean
	quiet   []time.Duration
	looked  time.Duration
	views   [3]rateView
	last    int    // the newest view
	first   int    // the view that a run begins with, also for who comes late to it
	shown   [2]int // the view that holds from a step on, by its parity
	own     []ownPace
}

// lane is what a worker did of the products of a meter, in all.
type lane struct {
	busy  atomic.Int64 // nanoseconds
	cells atomic.Int64 // elements of C
	off   atomic.Int64 // nanoseconds by which pieces took more or less than expected
	best  atomic.Int64 // elements a second of the fastest piece since the last look
	n     atomic.Int64 // pieces since then
	_     [cacheLine - 40]byte
}

// rateView is rates that all workers see alike.
type rateView struct {
	version uint64
	rate    []float64 // [meters][workers] elements a second; 0: not known
	spread  []float64 // by meter: how far single pieces of the least steady worker are from its rate
}

// ownPace is what a worker keeps of it.
type ownPace struct {
	view   *rateView
	stakes []stake // by op
	sides  []roofline.Side
	part   []int
	// the products of the op at hand
	products []product
	_        [cacheLine]byte
}

// How rates follow what is measured. One that moves less than hysteresis beside the others moves
// nothing.
const (
	lookEvery  = 40 * time.Millisecond
	rateWindow = 400 * time.Millisecond // over which older measurements fade
	leastBusy  = 200 * time.Microsecond // of all workers, for a first rate
	hysteresis = 0.03
	forgotten  = time.Second // without measurement beside others that have some
	moved      = 0.05        // of a spread that is shown
	unsteady   = 0.35        // spread from which a division is taken to end later by all of it
	leastFirst = 3           // pieces of a worker, for its first rate
)

// meterRanges are the ranges of M that have rates of their own: powers of two, and each once more
// for gated products.
const meterRanges = 2 * 22

// newPacer makes a pacer for as many shapes and ops, of workers of the given classes.
func newPacer(shapes, ops int, classOf []int) *pacer {
	meters, workers := shapes*meterRanges, len(classOf)
	p := &pacer{workers: workers, classOf: classOf, began: time.Now(), lanes: make([]lane, meters*workers),
		touched: make([]atomic.Bool, meters), seen: make([]lane, meters*workers), mean: make([]float64, meters*workers),
		spread: make([]float64, meters*workers), quiet: make([]time.Duration, meters*workers),
		heard: make([]time.Duration, meters*workers),
		own:   make([]ownPace, workers)}
	for i := range p.views {
		p.views[i] = rateView{rate: make([]float64, meters*workers), spread: make([]float64, meters)}
	}
	for i := range p.own {
		p.own[i] = ownPace{stakes: make([]stake, ops), sides: make([]roofline.Side, workers), part: make([]int,
			workers)}
	}
	return p
}

// meterOf is the meter of products of m rows of a shape.
func meterOf(shape, m int, gated bool) int {
	at := shape*meterRanges + 2*min(bits.Len(uint(m)), meterRanges/2-1)
	if gated {
		at++
	}
	return at
}

// begin looks before the workers start.
func (p *pacer) begin() {
	if p != nil {
		p.look()
		p.first, p.shown = p.last, [2]int{p.last, p.last}
	}
}

// join lets a worker read the rates that a run begins with.
func (p *pacer) join(w *pool.Worker) {
	if p != nil {
		p.own[w.Index()].view = &p.views[p.first]
	}
}

// follow is worker 0's look behind an op and before step `next`. Where ranks do not meet behind
// each op, nothing changes inside a run.
func (p *pacer) follow(next int, meets bool) {
	if p != nil && meets {
		p.look()
		p.shown[next&1] = p.last
	}
}

// read takes what worker 0 left before a step.
func (p *pacer) read(w *pool.Worker, next int) {
	if p != nil {
		p.own[w.Index()].view = &p.views[p.shown[next&1]]
	}
}

// add notes a piece of a product: how many elements, and when it began.
func (p *pacer) add(w *pool.Worker, meter, cells int, began time.Time) {
	took := int64(time.Since(began))
	l := &p.lanes[meter*p.workers+w.Index()]
	if rate := p.own[w.Index()].view.rate[meter*p.workers+w.Index()]; rate > 0 {
		off := took - int64(1e9*float64(cells)/rate)
		l.off.Add(max(off, -off))
	}
	l.note(cells, took)
	if !p.touched[meter].Load() {
		p.touched[meter].Store(true)
	}
}

// note counts a piece of so many elements that took so many nanoseconds.
func (l *lane) note(cells int, took int64) {
	if rate := int64(1e9 * float64(cells) / float64(max(took, 1))); rate > l.best.Load() {
		l.best.Store(rate)
	}
	l.n.Add(1)
	l.cells.Add(int64(cells))
	l.busy.Add(took)
}

// look makes new rates where it is time. It allocates nothing.
func (p *pacer) look() {
	now := time.Since(p.began)
	if now-p.looked < lookEvery && p.views[p.last].version > 0 {
		return
	}
	p.looked = now
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

// measure takes in what a meter's lanes have more than at the last look, where that is enough.
func (p *pacer) measure(meter int, now time.Duration) bool {
	first := meter * p.workers
	busy := int64(0)
	for i := first; i < first+p.workers; i++ {
		busy += p.lanes[i].busy.Load() - p.seen[i].busy.Load()
	}
	if busy < int64(leastBusy) {
		return false
	}
	for i := first; i < first+p.workers; i++ {
		l, s := &p.lanes[i], &p.seen[i]
		busy, cells, off := l.busy.Load(), l.cells.Load(), l.off.Load()
		took, did, missed := busy-s.busy.Load(), cells-s.cells.Load(), off-s.off.Load()
		if p.mean[i] == 0 && did > 0 && l.n.Load() < leastFirst {
			continue
		}
		best := l.best.Swap(0)
		l.n.Store(0)
		s.busy.Store(busy)
		s.cells.Store(cells)
		s.off.Store(off)
		if took <= 0 || did <= 0 {
			if p.mean[i] > 0 && now-p.quiet[i] > forgotten {
				p.mean[i], p.heard[i] = 0, 0 // it may have become faster: it is asked again
			}
			continue
		}
		p.learn(i, now, time.Duration(took), 1e9*float64(did)/float64(took), float64(best),
			math.Min(1, float64(missed)/float64(took)))
	}
	return true
}

// learn takes in a rate of so much busy time into lane i, its fastest piece, and its spread. The
// first pieces touch what nobody has touched, and one that was held up made a worker look 25 times
// as slow as it is: it got no part, so that nothing could tell otherwise. The fastest of them
// stands for a rate until there are more, which then count by their time.
func (p *pacer) learn(i int, now, took time.Duration, rate, best, spread float64) {
	p.heard[i] += took
	if p.mean[i] == 0 {
		p.mean[i], p.spread[i] = best, 0
	} else {
		weight := max(1-math.Exp(-float64(now-p.quiet[i])/float64(rateWindow)), float64(took)/float64(p.heard[i]))
		p.mean[i] += weight * (rate - p.mean[i])
		p.spread[i] += weight * (spread - p.spread[i])
	}
	p.quiet[i] = now
}

// differs says that a meter's rates are others than those shown, by more than hysteresis beside
// each other.
func (p *pacer) differs(meter int) bool {
	first := meter * p.workers
	v := &p.views[p.last]
	least, most := math.Inf(1), 0.0
	for i := first; i < first+p.workers; i++ {
		if (p.mean[i] == 0) != (v.rate[i] == 0) {
			return true
		}
		if p.mean[i] > 0 {
			least, most = math.Min(least, p.mean[i]/v.rate[i]), math.Max(most, p.mean[i]/v.rate[i])
		}
	}
	return most > least*(1+hysteresis) || most > 1.2 || least < 1/1.2 ||
		math.Abs(p.worst(first)-v.spread[meter]) > moved
}

// worst is the spread of the least steady worker of a meter, whose lanes begin at one.
func (p *pacer) worst(first int) float64 { return slices.Max(p.spread[first : first+p.workers]) }

// publish writes a meter's rates into a view.
func (p *pacer) publish(meter int, v *rateView) {
	first := meter * p.workers
	copy(v.rate[first:first+p.workers], p.mean[first:])
	v.spread[meter] = p.worst(first)
}
