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

// figure is one ceiling that is being measured.
type figure struct {
	ceiling profiles.Ceiling
	workers []int            // active workers
	warm    func(worker int) // runs on each worker before a pass, outside the measured time; may be nil
	// work runs for a few milliseconds and returns the number of operations or bytes
	work func(worker int) float64
	// passes of warm and work per sample; 0: one
	passes  int
	samples []float64
}

// bench holds the workers, memory and notes of a measurement.
type bench struct {
	pool    *pool.Pool
	profile *profiles.Profile
	buffer  *mem.Buffer   // for bandwidth; nil until needed
	buffers []*mem.Buffer // all buffers, which free releases
	left    int           // bytes left for further buffers
	flushes bool          // caches can be flushed (mem.CanFlush)
	stamps  []stamp
	notes   []string
	// total duration of samples with one worker, and the CPU time of the worker in them
	wall, used time.Duration
}

// stamp records the work of one worker in one pass. It is padded to separate cache lines.
type stamp struct {
	from, to time.Time
	used     time.Duration // CPU time
	done     float64
	at       int // offset at which reads of a large region continue
	_        [128]byte
}

func newBench(p *pool.Pool, host *profiles.Profile) *bench {
	return &bench{pool: p, profile: host, stamps: make([]stamp, p.Size()), left: memoryBudget(mem.Available()),
		flushes: mem.CanFlush()}
}

func (b *bench) free() {
	for _, m := range b.buffers {
		_ = m.Free() // the caller could not handle an error
	}
}

// run takes one sample: the work of all workers divided by the time from the first start to the
// last end, summed over the passes of the figure. For a single worker only its CPU time counts, so
// that rates of one worker are comparable on a busy machine.
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

// pass runs warm and work once on the active workers of a figure.
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

// ofOne returns the work of a single worker and its CPU time in seconds.
func (b *bench) ofOne(s *stamp) (work, seconds float64) {
	wall := s.to.Sub(s.from)
	used := s.used
	if used <= 0 || used > wall { // unknown
		used = wall
	}
	b.wall, b.used = b.wall+wall, b.used+used
	return s.done, used.Seconds()
}

// sharedPU is the ratio of CPU time to duration of single-worker samples below which the profile
// notes that other processes used the PU.
const sharedPU = 0.9

// sharedNote returns the note on other processes, if any.
func (b *bench) sharedNote() []string {
	share := b.used.Seconds() / b.wall.Seconds()
	if !(share < sharedPU) {
		return nil
	}
	return []string{fmt.Sprintf("another process was running: this process had the first PU for %.0f %% of the time; "+
		"figures of one PU are corrected for this, those of several are not", 100*share)}
}

// counts returns the numbers of PUs to measure: all up to eight, then powers of two, and n.
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

// counts returns the numbers of workers to measure. It includes the number of cores, where the
// curve bends since SMT siblings share multipliers.
func (b *bench) counts() []int {
	out := counts(b.pool.Size())
	if cores := b.profile.CorePUs().Count(); cores > 0 && cores < b.pool.Size() && !slices.Contains(out, cores) {
		out = append(out, cores)
		slices.Sort(out)
	}
	return out
}

// pusOf returns the PUs of workers.
func (b *bench) pusOf(workers []int) topotree.CPUSet {
	var out []int
	for _, w := range workers {
		out = append(out, b.pool.PUs()[w])
	}
	return topotree.NewCPUSet(out...)
}

// firstWorkers returns the worker indexes [0, n).
func firstWorkers(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}
