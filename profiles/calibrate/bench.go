package calibrate

import (
	"fmt"
	"slices"
	"time"

	"sandwich/profiles"
	"sandwich/runtime/mem"
	"sandwich/runtime/pool"
	"sandwich/topotree"
)

// figure is one ceiling under measurement.
type figure struct {
	ceiling profiles.Ceiling
	workers []int            // the first n workers
	warm    func(worker int) // runs on each worker before a pass; its time does not count; may be nil
	// work does a few milliseconds of work and returns how much, in operations or bytes
	work func(worker int) float64
	// a sample has so many passes, of warm and work each: 0 is one
	passes  int
	samples []float64
}

// bench holds the workers, the memory and the notes of a measurement.
type bench struct {
	pool    *pool.Pool
	profile *profiles.Profile
	buffer  *mem.Buffer   // of bandwidth; nil until it is needed
	buffers []*mem.Buffer // all, which free returns
	left    int           // bytes that further buffers may have
	flushes bool          // mem.CanFlush
	stamps  []stamp
	notes   []string
	// of the samples of one worker: how long they took, and how much of that the worker had its PU
	wall, used time.Duration
}

// stamp is the work of one worker in one pass. Each lies in cache lines of its own.
type stamp struct {
	from, to time.Time
	used     time.Duration // of the PU's time
	done     float64
	at       int // where reads of a large region continue
	_        [128]byte
}

func newBench(p *pool.Pool, host *profiles.Profile) *bench {
	return &bench{pool: p, profile: host, stamps: make([]stamp, p.Size()), left: memoryBudget(mem.Available()),
		flushes: mem.CanFlush()}
}

func (b *bench) free() {
	for _, m := range b.buffers {
		_ = m.Free() // fails for no reason that a caller could handle
	}
}

// run takes one sample: the work of all workers divided by the time from the first start to the
// last end, summed over the passes of the figure. For a single worker, time in which other threads
// had its PU does not count: heuristics compare rates of one worker, also on a busy machine.
func (b *bench) run(f *figure) (float64, error) {
	if _, err := b.pool.SetActive(f.workers); err != nil {
		return 0, err
	}
	work, seconds := 0.0, 0.0
	for range max(1, f.passes) {
		done, took := b.pass(f)
		work, seconds = work+done, seconds+took
	}
	return work / seconds, nil
}

// pass runs warm and work once on the workers of a figure, which are active.
func (b *bench) pass(f *figure) (work, seconds float64) {
	b.pool.Run(func(w *pool.Worker) {
		s := &b.stamps[w.Index()]
		if f.warm != nil {
			f.warm(w.Index())
		}
		w.Barrier()
		used := pool.ThreadTime()
		s.from = time.Now()
		s.done = f.work(w.Index())
		s.to = time.Now()
		s.used = pool.ThreadTime() - used
	})
	if len(f.workers) == 1 {
		return b.ofOne(&b.stamps[f.workers[0]])
	}
	first, last, done := b.stamps[f.workers[0]].from, b.stamps[f.workers[0]].to, 0.0
	for _, i := range f.workers {
		s := &b.stamps[i]
		if s.from.Before(first) {
			first = s.from
		}
		if s.to.After(last) {
			last = s.to
		}
		done += s.done
	}
	return done, last.Sub(first).Seconds()
}

// ofOne returns the work of a single worker and the time in which it had its PU.
func (b *bench) ofOne(s *stamp) (work, seconds float64) {
	wall := s.to.Sub(s.from)
	used := s.used
	if used <= 0 || used > wall { // not known
		used = wall
	}
	b.wall, b.used = b.wall+wall, b.used+used
	return s.done, used.Seconds()
}

// sharedPU is the share of the time in which a single worker had its PU below which the profile
// says that others had it too.
const sharedPU = 0.9

// sharedNote says so.
func (b *bench) sharedNote() []string {
	share := b.used.Seconds() / b.wall.Seconds()
	if !(share < sharedPU) {
		return nil
	}
	return []string{fmt.Sprintf("something else was running: the first PU was this process's for %.0f %% of the time, "+
		"which figures of one PU are corrected for and those of several are not", 100*share)}
}

// counts are the numbers of PUs that are measured: all of them up to eight, then powers of two, and
// the whole.
func counts(n int) []int {
	var out []int
	for c := 1; c < n; {
		out = append(out, c)
		if c < 8 {
			c++
		} else {
			c *= 2
		}
	}
	return append(out, n)
}

// counts are the numbers of workers that are measured: those of their number, and one on every
// core, where a curve bends since siblings share multipliers.
func (b *bench) counts() []int {
	out := counts(b.pool.Size())
	if cores := len(b.profile.CorePUs()); cores > 0 && cores < b.pool.Size() && !slices.Contains(out, cores) {
		out = append(out, cores)
		slices.Sort(out)
	}
	return out
}

// pusOf are the PUs of workers.
func (b *bench) pusOf(workers []int) topotree.CPUSet {
	var out []int
	for _, w := range workers {
		out = append(out, b.pool.PUs()[w])
	}
	return topotree.NewCPUSet(out...)
}

// firstWorkers is [0, n).
func firstWorkers(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}
