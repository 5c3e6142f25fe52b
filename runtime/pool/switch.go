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
// IDs follow the order of the list. The hot switch: the others sleep at once and are not woken by
// runs, the chosen ones are woken now, and nothing is moved or allocated if the set was active
// before. It returns how long a change took. A run under way is waited for, so it is not to be
// called from inside one.
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
		leads := i == 0 && p.leader.fn != nil // it waits for the others' runs, active or not
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

// timeSwitch records the first run after a switch: what SetActive took plus the time from the
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

// Stats is what the pool counted since it was made. Worker counts are as of the end of each
// worker's last run.
type Stats struct {
	Switches uint64 // changes of the active set
	// of the latest switches, oldest first: SetActive itself plus dispatch to the last worker's
	// start
	Durations []time.Duration
	Active    []int         // workers of the present set
	AtRisk    bool          // the next elastic run begins on guard
	Workers   []WorkerStats // by worker index
}

// WorkerStats are the counts of one worker.
type WorkerStats struct {
	Barriers uint64 // barriers passed
	Parks    uint64 // times it slept in the kernel after its spin limit
	Backoffs uint64 // times it stopped spinning because the kernel had given its CPU to another thread
	Taken    uint64 // chunks that it computed again for a worker that had lost its CPU
	Left     uint64 // times it was left out of a run because it had lost its own
	Apart    uint64 // chunks that it computed into its own memory because it was at risk
}

// Total are the counts of all workers together.
func (s *Stats) Total() (all WorkerStats) {
	for _, w := range s.Workers {
		all.Barriers += w.Barriers
		all.Parks += w.Parks
		all.Backoffs += w.Backoffs
		all.Taken += w.Taken
		all.Left += w.Left
		all.Apart += w.Apart
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
