package pool

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

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
	for i := range p.workers {
		w := p.worker(i)
		// A leader waits in runs of the others even if it is not active.
		leads := i == 0 && (p.leader.fn != nil || w != p.workers[0])
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

// Stats returns the counts since the pool was made. It may be called at any time, also during a
// run.
func (p *Pool) Stats() Stats {
	var out Stats
	for i := range p.workers {
		var all WorkerStats
		for _, w := range p.threads(i) {
			all.add(w.stats())
		}
		out.Workers = append(out.Workers, all)
	}
	p.shared.mu.Lock()
	out.Workers[0].add(p.shared.ended)
	p.shared.mu.Unlock()
	out.AtRisk = p.losses != nil || p.atRisk() // with losses atRisk is for the dispatcher alone
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

// findTeam returns the team of the given worker indices, and makes it if the set was never active.
func (p *Pool) findTeam(active []int) (*team, error) {
	for _, t := range p.teams {
		if slices.Equal(t.active, active) {
			return t, nil
		}
	}
	if len(active) == 0 {
		return nil, errors.New("at least one is needed")
	}
	if err := p.checkIndices(active...); err != nil {
		return nil, err
	}
	return p.newTeam(active), nil
}

// newTeam makes the team of the given worker indices, whose order gives the IDs.
func (p *Pool) newTeam(active []int) *team {
	t := &team{active: slices.Clone(active), idOf: make([]int32, len(p.workers)), barrier: newBarrier(len(active))}
	t.membership.members = make([]member, len(active))
	for i := range t.idOf {
		t.idOf[i] = -1
	}
	for id, index := range active {
		t.idOf[index] = int32(id)
	}
	for _, g := range p.groupings {
		t.layouts = append(t.layouts, t.apply(g))
	}
	p.teams = append(p.teams, t)
	return t
}

// checkIndices returns an error for an index that is out of range or repeated.
func (p *Pool) checkIndices(indices ...int) error {
	seen := make([]bool, len(p.workers))
	for _, i := range indices {
		if i < 0 || i >= len(p.workers) {
			return fmt.Errorf("worker %d does not exist: the pool has workers 0 to %d", i, len(p.workers)-1)
		}
		if seen[i] {
			return fmt.Errorf("worker %d is named twice", i)
		}
		seen[i] = true
	}
	return nil
}

// NewGrouping prepares a division of the workers for Worker.Use: groups of worker indices, each
// worker in at most one. Equal divisions share one value. It must not be called inside a Run or
// Lead.
func (p *Pool) NewGrouping(groups [][]int) (*Grouping, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.newGrouping(groups)
}

func (p *Pool) newGrouping(groups [][]int) (*Grouping, error) {
	if err := p.checkIndices(slices.Concat(groups...)...); err != nil {
		return nil, fmt.Errorf("worker groups: %w", err)
	}
	for _, g := range p.groupings {
		if slices.EqualFunc(g.groups, groups, slices.Equal) {
			return g, nil
		}
	}
	g := &Grouping{id: len(p.groupings)}
	for _, members := range groups {
		g.groups = append(g.groups, slices.Clone(members))
	}
	p.groupings = append(p.groupings, g)
	for _, t := range p.teams {
		t.layouts = append(t.layouts, t.apply(g))
	}
	return g, nil
}

// setGroups sets the division with which every following run starts; nil means one group of all
// workers.
func (p *Pool) setGroups(groups [][]int) error {
	g, err := p.newGrouping(groups)
	if err == nil {
		p.grouping = g
	}
	return err
}
