package pool

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"sandwich/runtime/pool/internal/sys"
)

const (
	// A team on its guard may compute some 6 % slower, so that it must lose more than that by the
	// losses of a worker, and not once: a 16th of the time drains away, and what is left has to
	// fill a few turns of another thread.
	lossGap   = 500 * time.Microsecond // a chunk or a wait of that length is worth asking the kernel
	lossDrain = 16
	lossMost  = 10 * time.Millisecond
	riskSpan  = time.Second // how long a worker is at risk after the last time that it was full

	leaveAfter = 20 * time.Microsecond // how long a barrier waits for who holds nothing

	// How long somebody else may have a chunk: twice the longest of one's own in the phase, within
	// these bounds.
	leastPatience   = 30 * time.Microsecond
	mostPatience    = 10 * time.Millisecond
	mostDoubled     = 12
	unknownPatience = 200 * time.Microsecond

	guardSpin = 200 * time.Microsecond // a guarded worker naps beyond it
	nap0      = 20 * time.Microsecond
)

// suspect asks the kernel how long the thread waited for its CPU since the last look, and what a
// hypervisor took of the CPU, which shows in no wait; of no account of waits, what the clock alone
// says has to do: a gap, or nothing.
func (t *waiter) suspect(now, gap time.Duration) {
	t.steal.Follow(int(t.pu.Load()))
	stolen := t.steal.Since(now)
	if waited, ok := t.delay.Read(); ok {
		gap, t.waitedCPU = waited-t.waitedCPU+stolen, waited
	}
	t.lost(now, max(gap, stolen))
}

// doubt notes that a wait, before which the worker had slept so many times, took so long that
// somebody must have lost its CPU.
func (w *Worker) doubt(parks uint64) {
	if w.parks != parks && w.pool.now()-w.parked > lossGap {
		w.pool.doubts.Add(1)
	}
}

// interrupted says whether the kernel gave the thread's CPU to another one since the last look.
func (t *waiter) interrupted() bool {
	n := sys.InvoluntarySwitches()
	rose := n > t.nivcsw
	t.nivcsw = n
	return rose
}

// lost notes for how long the thread had lost its CPU since the last note. What a machine takes by
// itself drains away meanwhile; beyond lossMost the thread is at risk.
func (t *waiter) lost(now, gap time.Duration) {
	if t.spin == 0 {
		return // there are more workers than PUs
	}
	t.losing = max(0, t.losing+gap-(now-t.noted)/lossDrain)
	t.noted = now
	if t.losing > lossMost {
		t.losing = lossMost
		t.riskUntil = now + riskSpan
		t.pool.risk.Store(int64(t.riskUntil))
	}
}

// atRisk says whether the next elastic run begins on guard.
func (p *Pool) atRisk() bool {
	if p.losses != nil {
		return !p.losses.late(p.runs)
	}
	until := p.risk.Load()
	if until == 0 {
		return false
	}
	if p.now() < time.Duration(until) {
		return true
	}
	p.risk.CompareAndSwap(until, 0)
	return false
}

// watch is the wait of a guarded worker: it spins, and naps when that has taken long.
type watch struct {
	w          *waiter
	began, now time.Duration
	looks      int
}

func (t *waiter) watch() watch { return newWatch(t) }

func newWatch(t *waiter) watch {
	now := t.pool.now()
	return watch{w: t, began: now, now: now}
}

// waited is how long it has.
func (s *watch) waited() time.Duration { return s.now - s.began }

// look is called between two looks at what is waited for.
func (s *watch) look() {
	sys.Pause(1)
	if s.looks++; s.looks%clockSpins != 0 {
		return
	}
	s.now = s.w.pool.now()
	if s.waited() > guardSpin || s.w.spin == 0 {
		s.w.parks++
		sys.Nap(nap0)
		s.now = s.w.pool.now()
	}
}

// losses make workers lose their CPUs at will: part of the times at which they might, for up to a
// while. Then the team is on its guard, in part of the runs as soon as all have met and else from
// the beginning, and all workers are at risk. Tests use it, and who wants to see that tokens stay
// the same.
type losses struct {
	seed uint64
	part uint64 // of 2^32
	most time.Duration
}

// lossesVariable is SEED:PART%:DURATION, such as 7:1%:2ms.
const lossesVariable = "SANDWICH_LOSE"

func readLosses() (*losses, error) {
	text := os.Getenv(lossesVariable)
	if text == "" {
		return nil, nil
	}
	l, err := parseLosses(text)
	if err != nil {
		return nil, fmt.Errorf("%s=%.40s: %w", lossesVariable, text, err)
	}
	return l, nil
}

func parseLosses(text string) (*losses, error) {
	wrong := errors.New("give SEED:PART%:DURATION, such as 7:1%:2ms, to make workers lose their CPUs at will")
	fields := strings.Split(text, ":")
	if len(fields) != 3 {
		return nil, wrong
	}
	seed, err1 := strconv.ParseUint(fields[0], 10, 64)
	part, err2 := strconv.ParseFloat(strings.TrimSuffix(fields[1], "%"), 64)
	most, err3 := time.ParseDuration(fields[2])
	if errors.Join(err1, err2, err3) != nil || !(part >= 0 && part <= 100) || most <= 0 || most > time.Second {
		return nil, wrong
	}
	return &losses{seed: seed, part: uint64(part / 100 * (1 << 32)), most: most}, nil
}

// strike is called where a worker may be lost.
func (l *losses) strike(w *Worker) {
	if l == nil {
		return
	}
	w.strikes++
	x := mix(l.seed ^ uint64(w.index)<<48 ^ w.strikes)
	if x&(1<<32-1) < l.part {
		sys.Nap(1 + time.Duration(mix(x)%uint64(l.most)))
	}
}

// late tells whether the guard of a run is raised in its midst.
func (l *losses) late(run uint64) bool { return mix(l.seed^run<<32)&(1<<32-1) < l.part }

// mix is splitmix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014).
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
