package calibrate

import (
	"context"
	"fmt"
	"time"

	"sandwich/microkernel"
	"sandwich/profiles"
	"sandwich/runtime/mem"
)

// measureCompute fills ComputeMatrix. Two PUs that share the multipliers of a core keep about half
// of their rate.
func (f *full) measureCompute(ctx context.Context, until time.Time) error {
	host := microkernel.Host()
	specs := microkernel.PeakSpecs(host)
	if len(specs) == 0 {
		return fmt.Errorf("%w: there is no multiply-add kernel for this CPU", errUnmeasured)
	}
	k, err := microkernel.NewPeak(specs[0], host)
	if err != nil {
		return err
	}
	work := peakWork(k, computeWindow)
	return f.pairs(ctx, until, pairing{name: profiles.ComputeMatrix, unit: "share", share: true,
		take: func(t *trial) error {
			return f.sides(t, &figure{workers: t.workers, work: work})
		}})
}

// measureMemory fills MemoryMatrix. PUs that share a narrow link to memory keep less of their rate.
func (f *full) measureMemory(ctx context.Context, until time.Time) error {
	if err := f.memory.reason; err != nil {
		return fmt.Errorf("%w: %w", errUnmeasured, err)
	}
	return f.pairs(ctx, until, pairing{name: profiles.MemoryMatrix, unit: "share", share: true,
		take: func(t *trial) error {
			f.memory.assign(f.pool.PUs(), t.workers)
			return f.sides(t, f.readFor(t.workers, memoryWindow))
		}})
}

// cachePart is the fraction of a last-level cache that each of two PUs reads: one region fits, two
// do not.
const cachePart = 0.6

// measureCache fills CacheMatrix.
func (f *full) measureCache(ctx context.Context, until time.Time) error {
	if err := f.memory.reason; err != nil {
		return fmt.Errorf("%w: %w", errUnmeasured, err)
	}
	pus := f.pool.PUs()
	part := map[int]int{}
	for _, pu := range pus {
		part[pu] = int(cachePart*float64(min(lastCache(f.profile.Machine, pu), maxCache))) &^ (readChunk - 1)
		if r := f.memory.of(pu); part[pu] == 0 || r == nil || 2*part[pu] > len(r.bytes()) {
			return fmt.Errorf("%w: the last-level cache of PU %d is not described, or there is too little "+
				"memory for it", errUnmeasured, pu)
		}
	}
	pass := func(w int) float64 {
		region := f.memory.slices[w]
		for at := 0; at < len(region); at += readChunk {
			f.memory.reader.Read(region[at:at+readChunk], 1)
		}
		return float64(len(region))
	}
	return f.pairs(ctx, until, pairing{name: profiles.CacheMatrix, unit: "share", share: true,
		take: func(t *trial) error {
			f.memory.assign(pus, t.workers)
			for i, w := range t.workers {
				region := f.memory.of(pus[w]).bytes()
				lo := i * (len(region) / 2) &^ (readChunk - 1)
				f.memory.slices[w] = region[lo:][:part[pus[w]]]
			}
			return f.sides(t, &figure{workers: t.workers, work: pass, warm: func(w int) { pass(w) }})
		}})
}

// maxCache limits the bytes that are read of one cache.
const maxCache = 288 << 20

// sides runs a figure on one or two workers and appends the rate of each.
func (f *full) sides(t *trial, fig *figure) error {
	if _, err := f.run(fig); err != nil {
		return err
	}
	rate := func(w int) float64 {
		s := &f.stamps[w]
		return s.done / s.to.Sub(s.from).Seconds()
	}
	t.a = append(t.a, rate(t.workers[0]))
	if len(t.workers) > 1 {
		t.b = append(t.b, rate(t.workers[1]))
	}
	return nil
}

// maxFlushed is the maximum number of bytes that a worker flushes before a pass.
const maxFlushed = 32 << 20

// readFor returns a figure that reads the workers' slices for a time. A sample continues where the
// previous one ended, so that caches hold nothing of it. If the caches could hold a region, the
// beginning of each slice is flushed instead and read at most once per pass.
func (f *full) readFor(workers []int, window time.Duration) *figure {
	fig := &figure{workers: workers}
	slice := func(w int) []byte {
		if s := f.memory.slices[w]; !f.memory.flush || len(s) <= maxFlushed {
			return s
		}
		return f.memory.slices[w][:maxFlushed]
	}
	fig.work = func(w int) float64 {
		region, at, done := slice(w), &f.stamps[w].at, 0
		for began := time.Now(); time.Since(began) < window; done += readChunk {
			if *at+readChunk > len(region) {
				if f.memory.flush {
					break
				}
				*at = 0
			}
			f.memory.reader.Read(region[*at:][:readChunk], 1)
			*at += readChunk
		}
		return float64(done)
	}
	if f.memory.flush {
		fig.passes = passes(len(slice(workers[0])))
		fig.warm = func(w int) {
			f.stamps[w].at = 0
			mem.Flush(slice(w))
		}
	}
	return fig
}
