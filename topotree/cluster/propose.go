package cluster

import (
	"fmt"

	"sandwich/internal/num"
	"sandwich/topotree"
)

// Proposal relates a measured clustering to a tree.
type Proposal struct {
	// kind of the tree nodes with the same clusters; KindMachine if there are none
	Known topotree.Kind `json:"known,omitempty"`
	// group transform that makes exactly these clusters; zero if there is none
	Group topotree.Transform `json:"group,omitzero"`
	Text  string             `json:"text"` // description in one sentence
}

// Propose finds the level of t with the clusters, or else the group transform that makes exactly
// them. PUs that were not measured are ignored.
func Propose(t *topotree.Tree, c Clustering) Proposal {
	var measured topotree.CPUSet
	want := map[string]bool{}
	for _, s := range c.Sets {
		measured = measured.Union(s)
		want[s.Key()] = true
	}
	about := fmt.Sprintf("%d clusters of %d PUs", len(c.Sets), c.Size())
	if c.Size() == 0 {
		about = fmt.Sprintf("%d clusters of different sizes", len(c.Sets))
	}
	matches := func(level []*topotree.Node) bool {
		hits := 0
		for _, n := range level {
			s := n.CPUs.Intersect(measured)
			if s.IsEmpty() {
				continue
			}
			if !want[s.Key()] {
				return false
			}
			hits++
		}
		return hits == len(want)
	}
	for d := 1; d <= t.Depth(); d++ {
		if level := t.Level(d); matches(level) {
			return Proposal{Known: level[0].Kind, Text: fmt.Sprintf("%s are the %s nodes at depth %d", about,
				level[0].Kind, d)}
		}
	}
	for d := 1; d <= t.Depth(); d++ {
		span := 0
		for _, parent := range t.Level(d - 1) {
			span = num.GCD(span, len(parent.Children))
		}
		for n := 2; n <= span; n++ {
			for stride := 1; n*stride <= span; stride++ {
				if span%(n*stride) != 0 {
					continue
				}
				x := topotree.Group(n, stride, d)
				if g, err := t.Apply(x); err == nil && matches(g.Level(d)) {
					return Proposal{Group: x, Text: fmt.Sprintf("%s are not in the tree; %s adds them", about, x)}
				}
			}
		}
	}
	return Proposal{Text: about + " match no level and no regular grouping of the tree"}
}
