package pool

import (
	"sync"
	"time"
)

const switchHistory = 256 // latest switches whose durations Stats returns

// switchRecord counts hot switches. Its lock is separate from the pool's, so that metrics can be
// read during a run.
type switchRecord struct {
	mu     sync.Mutex
	count  uint64
	ring   [switchHistory]time.Duration
	timed  uint64 // durations ever put into ring
	active []int
	span   time.Duration // what SetActive took of the switch under way
}

// Stats is what the pool has counted since it was made. Counts of workers are as of the end of
// their last run.
type Stats struct {
	Switches uint64 // changes of the active set
	// Durations of the latest switches, oldest first: SetActive plus dispatch to the start of the
	// last worker.
	Durations []time.Duration
	Active    []int         // workers of the present set
	AtRisk    bool          // the next run that may be preemption-tolerant starts in that mode
	Workers   []WorkerStats // by worker index
}

// WorkerStats are the counts of one worker.
type WorkerStats struct {
	Barriers uint64 // barriers passed
	Parks    uint64 // sleeps in the kernel after the spin limit
	Backoffs uint64 // periods without spinning after the kernel gave its CPU to another thread
	Taken    uint64 // chunks reclaimed from a descheduled worker
	Left     uint64 // times it was left out of a run after it lost its CPU
	Private  uint64 // chunks computed into its private buffer
}

// Total returns the sums over all workers.
func (s *Stats) Total() (all WorkerStats) {
	for _, w := range s.Workers {
		all.add(w)
	}
	return all
}

func (s *WorkerStats) add(o WorkerStats) {
	s.Barriers += o.Barriers
	s.Parks += o.Parks
	s.Backoffs += o.Backoffs
	s.Taken += o.Taken
	s.Left += o.Left
	s.Private += o.Private
}
