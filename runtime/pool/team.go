package pool

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
