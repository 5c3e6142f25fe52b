package pool

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"sandwich/runtime/pool/internal/sys"
)

// Pool is a set of worker threads. Its methods may be called from any goroutine outside the
// functions that the pool runs. Calls that run or reconfigure are serialized.
type Pool struct {
	mu      sync.Mutex // held during a Run, a Lead, a reconfiguration, and while a leader of LeadShared has the pool
	workers []*Worker
	first   *Worker // worker 0 of the following runs: workers[0], or that of a leader of LeadShared
	pus     []int
	all     []int // every worker index
	pinned  bool
	note    string
	closed  bool

	// The run in progress. Set by the dispatcher, published to each worker by its commands.
	fn          func(*Worker)
	team        *team
	grouping    *Grouping
	timed       bool   // workers record the start of this run, the first one after a switch
	tag         uint64 // barrier phase the next run starts in, see Counter
	mayTolerate bool   // the run may continue without some of its workers
	tolerant    bool   // the run is in preemption-tolerant mode

	runs uint64 // runs ever dispatched

	teams     []*team
	groupings []*Grouping
	flags     []*Flags
	leader    Leader // of Lead
	shared    leaders
	caller    waiter // wait policy of the goroutine inside Run
	exited    sync.WaitGroup
	begin     time.Time
	switches  switchRecord
	placing   sync.Mutex // held while threads are bound to PUs

	_        [cacheLine]byte
	aborting atomic.Bool // a worker failed in this run: barriers release all workers
	_        [cacheLine]byte
	pending  atomic.Int64 // workers that have not finished this run; higher bits: see runOpen
	_        [cacheLine]byte
	risk     atomic.Int64  // time until which a worker is at risk of losing its CPU; 0: none
	doubts   atomic.Uint64 // barriers that took so long that a worker must have lost its CPU
	away     atomic.Int64  // workers that were left out and have not rejoined
	losses   *losses       // simulated ones
	_        [cacheLine]byte
	done     sys.Event // counts finished runs
	_        [cacheLine]byte
	failure  failure
}

// NoSpin as Options.Spin makes waiting workers sleep at once, for emulated and oversubscribed
// machines.
const NoSpin time.Duration = -1

// ErrClosed is the value with which Run, RunTolerant and Lead panic after Close.
var ErrClosed = errors.New("the worker pool is closed")

// Bits of Pool.pending above the number of workers that are in the run.
const (
	pendingMask = 1<<32 - 1
	runOpen     = 1 << 32 // workers may join and leave the run
	runFinished = 1 << 33 // a worker reached the end
)

// Worker is a thread of the pool as the function of a run sees it. It is valid only inside that
// function and on its goroutine.
type Worker struct {
	waiter
	index int
	class int
	slow  float64       // Options.Slow
	lap   time.Duration // start of the chunk if slow; 0 between loops

	team     *team
	id       int
	layout   *layout
	thread   atomic.Int64 // system's number of the thread
	group    *Group
	rank     int
	tag      uint64 // barrier phase, see Counter
	step     int    // at which it rejoined the run, or -1
	skip     int    // barriers of that step that the team has passed already
	tolerant bool   // member of a team in preemption-tolerant mode; the pool may be in another run already
	list     uint8  // list of which it may have a chunk in preemption-tolerant mode
	ended    uint64 // last run whose end it reached
	doubts   uint64 // value of Pool.doubts at the last check

	// In preemption-tolerant mode: number and start of the chunk at hand, whether it is private,
	// and the phase and the longest chunk in it.
	chunk   uint64
	since   time.Duration
	private bool
	timing  uint64
	longest time.Duration
	strikes uint64 // points of simulated losses

	run     uint64        // number of the run
	started time.Duration // start of the run on this worker, if Pool.timed

	_        [cacheLine]byte
	commands sys.Event // counts the commands to this worker
	cmd      atomic.Int32
	_        [cacheLine]byte

	seen struct{ barriers, parks, backoffs, taken, left, offered atomic.Uint64 } // read by Stats
}

// waiter is the wait policy of one thread: spin up to a limit, then sleep in the kernel. A thread
// that loses its CPU while it spins sleeps at once for some time: another thread needs that CPU,
// perhaps the worker that it waits for, and the scheduler prefers a thread that slept. The loss
// shows as a gap in the clock and is confirmed by the count of involuntary context switches. Only
// the owner uses the plain fields.
type waiter struct {
	pool    *Pool
	limit   atomic.Int64 // longest spin in nanoseconds; SetActive lowers it to 0 while the worker is not needed
	spin    time.Duration
	pu      atomic.Int64 // that a worker is bound to, or would be
	nivcsw  int64        // involuntary context switches at the last check
	delay   sys.Delay
	steal   sys.Steal
	backing bool // in a period without spinning, until calm
	calm    time.Duration
	backoff time.Duration // length of the current or last period

	parked    time.Duration // when it last went to sleep
	waitedCPU time.Duration // value of delay at the last check
	noted     time.Duration // time of the last call of lost
	losing    time.Duration // losses that have not drained away
	riskUntil time.Duration // until when it is at risk

	// Published by Worker.publish.
	barriers, parks, backoffs, taken, left, offered uint64
}

// Leader is the right to run and reconfigure the pool from the thread of worker 0. It is valid only
// inside the function given to Lead or LeadShared and on its goroutine.
type Leader struct {
	p      *Pool
	w      *Worker       // worker 0 of its runs
	fn     func(*Leader) // of Lead
	failed *Panic        // why the function did not return
	done   sync.WaitGroup
	shared bool // made by LeadShared
	has    bool // LeadShared: between Take and Give
}

// leaders are the threads of the functions that run in LeadShared.
type leaders struct {
	mu      sync.Mutex
	workers []*Worker   // each can be worker 0
	ended   WorkerStats // counts of leaders that have ended
}

// command is what a worker must do.
type command int32

const (
	cmdNone command = iota
	cmdRun
	cmdJoin
	cmdLead
	cmdExit
)

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

// worker returns the worker with an index in the run in progress. Pool.mu is held.
func (p *Pool) worker(index int) *Worker {
	if index == 0 {
		return p.first
	}
	return p.workers[index]
}

// threads returns the workers with an index that have a thread: one, and for worker 0 also those of
// the leaders of LeadShared.
func (p *Pool) threads(index int) []*Worker {
	list := []*Worker{p.workers[index]}
	if index == 0 {
		p.shared.mu.Lock()
		defer p.shared.mu.Unlock()
		list = append(list, p.shared.workers...)
	}
	return list
}

// Size returns the number of workers, active or not.
func (p *Pool) Size() int { return len(p.workers) }

// PUs returns the PU that each worker was given to New with, by worker index. Move does not change
// it.
func (p *Pool) PUs() []int { return slices.Clone(p.pus) }

// Classes returns the class of each worker, by worker index.
func (p *Pool) Classes() []int {
	var out []int
	for _, w := range p.workers {
		out = append(out, w.class)
	}
	return out
}

// Threads returns the system's number of each worker's thread, by worker index; zeros if threads
// have none.
func (p *Pool) Threads() []int {
	var out []int
	for _, w := range p.workers {
		out = append(out, int(w.thread.Load()))
	}
	return out
}

// isPinned reports whether every worker is bound to its PU.
func (p *Pool) isPinned() bool { return p.pinned }

// Note returns one sentence about an option that the system does not support, or "".
func (p *Pool) Note() string { return p.note }

// now returns the time since the pool was made. It is monotonic and does not allocate.
func (p *Pool) now() time.Duration { return time.Since(p.begin) }

// ThreadTime returns the processor time of the calling thread, or 0 if the system does not report
// it.
func ThreadTime() time.Duration { return sys.ThreadTime() }
