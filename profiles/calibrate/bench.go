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
	workers []int                    // the first n workers
	warm    func(worker int)         // runs before the workers meet and start; may be nil
	work    func(worker int) float64 // does a few milliseconds of work and returns how much, in operations or bytes
	samples []float64
}

// bench is what the figures share.
type bench struct {
	pool    *pool.Pool
	profile *profiles.Profile
	buffer  *mem.Buffer   // nil until the memory is asked for
	own     []*mem.Buffer // of single figures
	stamps  []stamp
	notes   []string
	// of the samples of one worker: how long they took, and how much of that the worker had its PU
	wall, used time.Duration
}

// stamp is when a worker did how much; workers write theirs side by side, a cache line or two each.
type stamp struct {
	from, to time.Time
	used     time.Duration // of the PU's time
	done     float64
	at       int // where reads of a large region go on
	_        [128]byte
}

func newBench(p *pool.Pool, host *profiles.Profile) *bench {
	return &bench{pool: p, profile: host, stamps: make([]stamp, p.Size())}
}

func (b *bench) free() {
	if b.buffer != nil {
		_ = b.buffer.Free() // unmapping what was mapped cannot fail in a way that anybody could act on
	}
	for _, m := range b.own {
		_ = m.Free()
	}
}

// run takes one sample: what all workers did over the time from the first start to the last end.
// The time that others had the PU of a single worker is no part of it: where four processes ran on
// two PUs, rates of instructions came out at a tenth, and rules of thumb chose by them.
func (b *bench) run(f *figure) (float64, error) {
	if _, err := b.pool.SetActive(f.workers); err != nil {
		return 0, err
	}
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
		return b.ofOne(&b.stamps[f.workers[0]]), nil
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
	return done / last.Sub(first).Seconds(), nil
}

// ofOne is the sample of a single worker.
func (b *bench) ofOne(s *stamp) float64 {
	wall := s.to.Sub(s.from)
	used := s.used
	if used <= 0 || used > wall { // not known
		used = wall
	}
	b.wall, b.used = b.wall+wall, b.used+used
	return s.done / used.Seconds()
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
