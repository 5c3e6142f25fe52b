package calibrate

import (
	"context"
	"math"
	"slices"
	"sync/atomic"
	"time"
	"unsafe"

	"sandwich/profiles"
	"sandwich/runtime/pool"
)

const (
	bursts       = 5                     // of a sample, which is their median, against interrupts
	burstTrips   = 100                   // round trips of one burst
	lostAfter    = 20 * time.Millisecond // full.patience outside tests
	looksPerLook = 1 << 12               // looks at the line between two looks at the clock
)

// line is a cache line that two workers write in turn. The neighbors stay empty: prefetchers fetch
// lines in pairs.
type line struct {
	_    [128]byte
	turn atomic.Uint32
	lost atomic.Bool // one of both waited longer than patience: the kernel took the other's PU
	_    [128]byte

	patience time.Duration
}

// lineAt places a line at the beginning of memory that lies on a node of choice.
func lineAt(b []byte) *line {
	if len(b) < int(unsafe.Sizeof(line{})) {
		return new(line)
	}
	return (*line)(unsafe.Pointer(&b[0]))
}

// await spins until it is turn n; false when the sample is lost.
func (l *line) await(n uint32) bool {
	var since time.Time
	for looks := 1; l.turn.Load() != n; looks++ {
		if looks%looksPerLook != 0 {
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

// bounce is one side of the game: the even side waits for even turns and makes them odd.
func (l *line) bounce(side uint32, from, trips uint32) bool {
	for n := from; n < from+trips; n++ {
		if !l.await(2*n + side) {
			return false
		}
		l.turn.Store(2*n + side + 1)
	}
	return true
}

// measureLatency fills LatencyMatrix: nanoseconds for a cache line to go from PU i to PU j and
// back.
func (f *full) measureLatency(ctx context.Context, until time.Time) error {
	return f.pairs(ctx, until, pairing{name: profiles.LatencyMatrix, unit: "ns", take: f.roundTrip})
}

// roundTrip samples a pair of workers: the median of some bursts. A lost sample is left out.
func (f *full) roundTrip(t *trial) error {
	if len(t.workers) < 2 {
		return nil // one PU alone sends no line
	}
	l := lineAt(f.memory.near(f.pool.PUs()[t.workers[0]]))
	l.turn.Store(0)
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
		t.a = append(t.a, median(took[:]))
	}
	return nil
}

// median of a few values; NaN of none.
func median(v []float64) float64 {
	if len(v) == 0 {
		return math.NaN()
	}
	s := slices.Clone(v)
	slices.Sort(s)
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}
