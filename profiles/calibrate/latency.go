package calibrate

import (
	"context"
	"sync/atomic"
	"time"
	"unsafe"

	"sandwich/internal/num"
	"sandwich/profiles"
	"sandwich/runtime/pool"
)

// line is a cache line that two workers write alternately. Adjacent lines stay unused, since
// prefetchers fetch lines in pairs.
type line struct {
	_     [128]byte
	count atomic.Uint32
	lost  atomic.Bool // a worker waited longer than patience, since the other one was descheduled
	_     [128]byte

	patience time.Duration
}

// lineAt returns a line at the beginning of b, which determines its node, or on the heap if b is
// too short.
func lineAt(b []byte) *line {
	if len(b) < int(unsafe.Sizeof(line{})) {
		return new(line)
	}
	return (*line)(unsafe.Pointer(&b[0]))
}

// await spins until count is n. It returns false if the sample is abandoned.
func (l *line) await(n uint32) bool {
	var since time.Time
	for spins := 1; l.count.Load() != n; spins++ {
		if spins%spinsPerTime != 0 {
			continue
		}
		if since.IsZero() {
			since = time.Now()
		}
		if l.lost.Load() || time.Since(since) > l.patience {
			l.lost.Store(true)
			return false
		}
	}
	return true
}

// bounce runs one side of the exchange: side 0 waits for even counts and makes them odd, side 1 the
// reverse.
func (l *line) bounce(side uint32, from, trips uint32) bool {
	for n := from; n < from+trips; n++ {
		if !l.await(2*n + side) {
			return false
		}
		l.count.Store(2*n + side + 1)
	}
	return true
}

// measureLatency fills LatencyMatrix: the nanoseconds for a cache line to go from PU i to PU j and
// back.
func (f *full) measureLatency(ctx context.Context, until time.Time) error {
	return f.pairs(ctx, until, pairing{name: profiles.LatencyMatrix, unit: "ns", take: f.roundTrip})
}

// roundTrip takes one sample of a pair of workers: the median of some bursts. An abandoned sample
// is dropped.
func (f *full) roundTrip(t *trial) error {
	if len(t.workers) < 2 {
		return nil // needs two PUs
	}
	l := lineAt(f.memory.near(f.pool.PUs()[t.workers[0]]))
	l.count.Store(0)
	l.lost.Store(false)
	l.patience = f.patience
	if _, err := f.pool.SetActive(t.workers); err != nil {
		return err
	}
	var took [bursts]float64
	f.pool.Run(func(w *pool.Worker) {
		side := uint32(w.ID())
		w.Barrier()
		ok := l.bounce(side, 0, burstTrips) // both have left the barrier after this one
		for i := 0; i < bursts && ok; i++ {
			began := time.Now()
			ok = l.bounce(side, uint32(i+1)*burstTrips, burstTrips)
			if side == 0 {
				took[i] = float64(time.Since(began).Nanoseconds()) / burstTrips
			}
		}
	})
	if !l.lost.Load() {
		t.a = append(t.a, num.Median(took[:]))
	}
	return nil
}
