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
	// Preemption-tolerant mode costs a few percent, so it starts only after a worker has lost more
	// than that for some time: losses drain away at one part in lossDrain of the time, and the rest
	// must reach lossMost.
	lossGap   = 500 * time.Microsecond // length of a chunk or a wait after which the kernel is asked
	lossDrain = 16
	lossMost  = 10 * time.Millisecond
	riskSpan  = time.Second // how long a worker is at risk after its losses reached lossMost

	leaveAfter = 20 * time.Microsecond // how long a barrier waits for workers without chunks

	// Bounds of the time for which another worker may hold a chunk: twice the longest chunk of the
	// waiting worker in the phase.
	leastPatience   = 30 * time.Microsecond
	mostPatience    = 10 * time.Millisecond
	mostDoubled     = 12
	unknownPatience = 200 * time.Microsecond

	tolerantSpin = 200 * time.Microsecond // after which a worker in preemption-tolerant mode sleeps briefly
	nap0         = 20 * time.Microsecond
)

// suspect asks the kernel how long the thread waited for its CPU since the last check, and how much
// time a hypervisor took from the CPU, which no wait shows. Without an account of waits, the gap in
// the clock counts instead.
func (t *waiter) suspect(now, gap time.Duration) {
	t.steal.Follow(int(t.pu.Load()))
	stolen := t.steal.Since(now)
	if waited, ok := t.delay.Read(); ok {
		gap, t.waitedCPU = waited-t.waitedCPU+stolen, waited
	}
	t.lost(now, max(gap, stolen))
}

// doubt notes that a wait took so long that a worker must have lost its CPU. parks is the number of
// sleeps before the wait.
func (w *Worker) doubt(parks uint64) {
	if w.parks != parks && w.pool.now()-w.parked > lossGap {
		w.pool.doubts.Add(1)
	}
}

// interrupted reports whether the kernel gave the thread's CPU to another one since the last check.
func (t *waiter) interrupted() bool {
	n := sys.InvoluntarySwitches()
	rose := n > t.nivcsw
	t.nivcsw = n
	return rose
}

// lost adds the time for which the thread lost its CPU since the last call. A part of the elapsed
// time drains away, for what a machine takes by itself; beyond lossMost the thread is at risk.
func (t *waiter) lost(now, gap time.Duration) {
	if t.spin == 0 {
		return // more workers than PUs
	}
	t.losing = max(0, t.losing+gap-(now-t.noted)/lossDrain)
	t.noted = now
	if t.losing > lossMost {
		t.losing = lossMost
		t.riskUntil = now + riskSpan
		t.pool.risk.Store(int64(t.riskUntil))
	}
}

// atRisk reports whether the next run that may be preemption-tolerant starts in that mode.
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

// watch is the wait in preemption-tolerant mode: it spins, and sleeps briefly after some time.
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

// waited returns how long it has waited.
func (s *watch) waited() time.Duration { return s.now - s.began }

// look is called between two checks of the condition.
func (s *watch) look() {
	sys.Pause(1)
	if s.looks++; s.looks%clockSpins != 0 {
		return
	}
	s.now = s.w.pool.now()
	if s.waited() > tolerantSpin || s.w.spin == 0 {
		s.w.parks++
		sys.Nap(nap0)
		s.now = s.w.pool.now()
	}
}

// losses simulate that workers lose their CPUs: at a part of the points where that may happen, for
// up to a duration. All workers are at risk then, and preemption-tolerant mode starts with the run
// or, in a part of the runs, at a barrier. Tests use it, and users who want to see that tokens stay
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
	wrong := errors.New("use SEED:PART%:DURATION, such as 7:1%:2ms, to simulate that workers lose their CPUs")
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

// strike is called where a worker may lose its CPU.
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

// late reports whether preemption-tolerant mode of a run starts at a barrier instead of at once.
func (l *losses) late(run uint64) bool { return mix(l.seed^run<<32)&(1<<32-1) < l.part }

// mix is splitmix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014).
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
