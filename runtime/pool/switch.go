package pool

import (
	"fmt"
	"slices"
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

// SetActive chooses the workers (indices) that take part from the next run on; nil means all. Their
// IDs follow the order of the list. The other workers sleep at once and runs do not wake them; the
// chosen ones are woken now. If the set was active before, nothing is moved or allocated. SetActive
// returns how long a change took. It waits for a run in progress, so it must not be called inside
// one.
func (p *Pool) SetActive(workers []int) (time.Duration, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.setActive(workers)
}

func (p *Pool) setActive(workers []int) (time.Duration, error) {
	if workers == nil {
		workers = p.all
	}
	if slices.Equal(workers, p.team.active) {
		return 0, nil
	}
	began := p.now()
	t, err := p.findTeam(workers)
	if err != nil {
		return 0, fmt.Errorf("active workers: %w", err)
	}
	p.adopt(t)
	p.timed = true
	span := p.now() - began
	s := &p.switches
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count++
	s.span = span
	return span, nil
}

// adopt makes t the team of the following runs.
func (p *Pool) adopt(t *team) {
	p.team = t
	for i, w := range p.workers {
		leads := i == 0 && p.leader.fn != nil // it waits in runs of the others even if it is not active
		if t.idOf[i] < 0 && !leads {
			w.limit.Store(0)
			continue
		}
		if w.limit.Swap(int64(w.spin)) == 0 && w.spin > 0 {
			w.commands.Wake() // it finds no command and spins, ready for the run
		}
	}
	p.switches.mu.Lock()
	defer p.switches.mu.Unlock()
	p.switches.active = t.active
}

// timeSwitch records the first run after a switch: the time of SetActive plus the time from the
// dispatch of the run, which began at the given time, to its start on the last worker.
func (p *Pool) timeSwitch(began time.Duration) {
	p.timed = false
	var last time.Duration
	for _, index := range p.team.active {
		last = max(last, p.workers[index].started-began)
	}
	s := &p.switches
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ring[s.timed%switchHistory] = s.span + last
	s.timed++
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
		all.Barriers += w.Barriers
		all.Parks += w.Parks
		all.Backoffs += w.Backoffs
		all.Taken += w.Taken
		all.Left += w.Left
		all.Private += w.Private
	}
	return all
}

// Stats may be called at any time, also during a run.
func (p *Pool) Stats() Stats {
	var out Stats
	for _, w := range p.workers {
		out.Workers = append(out.Workers, WorkerStats{w.seen.barriers.Load(), w.seen.parks.Load(),
			w.seen.backoffs.Load(), w.seen.taken.Load(), w.seen.left.Load(), w.seen.offered.Load()})
	}
	out.AtRisk = p.atRisk()
	s := &p.switches
	s.mu.Lock()
	defer s.mu.Unlock()
	out.Switches = s.count
	out.Active = slices.Clone(s.active)
	for i := s.timed - min(s.timed, switchHistory); i < s.timed; i++ {
		out.Durations = append(out.Durations, s.ring[i%switchHistory])
	}
	return out
}
