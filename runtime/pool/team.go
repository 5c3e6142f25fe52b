package pool

import (
	"errors"
	"fmt"
	"slices"
)

// team is one set of active workers with everything that its runs need. It is made once and kept,
// so that a switch to a set that was active before exchanges a pointer.
type team struct {
	active     []int   // worker index by ID
	idOf       []int32 // ID by worker index, -1 for workers that do not take part
	barrier    *barrier
	membership membership
	layouts    []layout // by Grouping.id
}

// Grouping is a division of the workers into groups, made by Pool.NewGrouping and valid for every
// active set.
type Grouping struct {
	id     int
	groups [][]int // worker indices
}

// layout is a Grouping applied to one team.
type layout struct {
	groups []*Group
	of     []int32 // position in groups, by worker ID
	rank   []int32 // position inside the group, by worker ID
}

// Group is a set of workers that share a local barrier: one tensor-parallel rank.
type Group struct {
	id, size int
	members  []int // worker indices by GroupRank
	barrier  *barrier
}

// ID returns the position of the group in the list given to NewGrouping. Active workers that are
// not in the list form one more group.
func (g *Group) ID() int { return g.id }

// Size returns the number of its active workers.
func (g *Group) Size() int { return g.size }

// Members returns the indices of its active workers by GroupRank. The caller must not change them.
func (g *Group) Members() []int { return g.members }

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

// apply divides the workers of the team as g says.
func (t *team) apply(g *Grouping) layout {
	l := layout{of: make([]int32, len(t.active)), rank: make([]int32, len(t.active))}
	for id := range l.of {
		l.of[id] = -1
	}
	put := func(group *Group, id int32) {
		l.of[id], l.rank[id] = int32(group.id), int32(group.size)
		group.size++
		group.members = append(group.members, t.active[id])
	}
	for i, members := range g.groups {
		group := &Group{id: i}
		for _, index := range members {
			if id := t.idOf[index]; id >= 0 {
				put(group, id)
			}
		}
		l.groups = append(l.groups, group)
	}
	rest := &Group{id: len(g.groups)}
	for id := range l.of {
		if l.of[id] < 0 {
			put(rest, int32(id))
		}
	}
	l.groups = append(l.groups, rest)
	for _, group := range l.groups {
		group.barrier = newBarrier(group.size)
	}
	return l
}

// abort releases every worker from its barrier. Pool.aborting is set.
func (t *team) abort() {
	t.barrier.epoch.Advance()
	for _, l := range t.layouts {
		for _, g := range l.groups {
			g.barrier.epoch.Advance()
		}
	}
}

func (t *team) reset() {
	t.barrier.reset()
	for _, l := range t.layouts {
		for _, g := range l.groups {
			g.barrier.reset()
		}
	}
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
