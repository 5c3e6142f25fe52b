// Package enumerate yields all trees that transforms make of a tree, one per equivalence class
// (Sandwich 5.2). It works on one class of isomorphic nodes per depth and color instead of on
// nodes.
package enumerate

import (
	"iter"
	"slices"
	"sync"

	"sandwich/internal/num"
	"sandwich/topotree"
	"sandwich/topotree/internal/merkle"
)

// Bounds limits the trees that Trees yields. The zero value selects the default space of the
// paper.
type Bounds struct {
	// MaxGroups is the maximum number of group levels of a tree; 0 means 2, -1 means none.
	MaxGroups int
	// MaxColors is the maximum number of classes of one depth that remove treats separately; 0
	// means 3. With more classes, remove affects all of them alike.
	MaxColors int
	// MinPUs excludes trees with fewer PUs.
	MinPUs int
	// MaxTrees limits the number of trees; 0 means no limit. Stats.Truncated reports whether it
	// took effect.
	MaxTrees int
	// First lists group transforms to try first, such as those that a measurement proposed.
	First []topotree.Transform
	// Stats, if not nil, is updated during the enumeration.
	Stats *Stats
}

// Stats holds counts of an enumeration.
type Stats struct {
	Generated  int  `json:"generated"`  // trees made by transforms
	Duplicates int  `json:"duplicates"` // of these, equivalent to an earlier one
	Kept       int  `json:"kept"`       // trees that were yielded
	Groups     int  `json:"groups"`     // distinct trees without removals, including the ungrouped one
	Truncated  bool `json:"truncated,omitempty"`
}

// Trees yields the trees that transforms make of t, one per equivalence class (Sandwich 5.2.2):
// groups first, then only and remove, until there are no new candidates. The first tree is t
// itself. Trees are described by their transforms and built on first use, so that only digests take
// memory during the enumeration; trees with equal groups share the result of Full. t must have no
// removals.
func Trees(t *topotree.Tree, b Bounds) iter.Seq[*topotree.Tree] {
	return func(yield func(*topotree.Tree) bool) {
		w := newWalk(t, b, yield)
		*w.stats = Stats{}
		start := classTree{
			root: classOf(t.Root(), map[topotree.Digest]*class{}), ops: t.Transforms(),
			interchangeable: t.Interchangeable(),
		}
		w.groups(start)
	}
}

type walk struct {
	tree  *topotree.Tree
	b     Bounds
	stats *Stats
	yield func(*topotree.Tree) bool
	seen  merkle.Set
	done  bool

	mu    sync.Mutex       // protects fulls
	fulls []*topotree.Tree // grouped trees without removals
}

func newWalk(t *topotree.Tree, b Bounds, yield func(*topotree.Tree) bool) *walk {
	switch {
	case b.MaxGroups == 0:
		b.MaxGroups = 2
	case b.MaxGroups < 0:
		b.MaxGroups = 0
	}
	if b.MaxColors == 0 {
		b.MaxColors = 3
	}
	w := &walk{tree: t, b: b, stats: b.Stats, yield: yield}
	if w.stats == nil {
		w.stats = &Stats{}
	}
	return w
}

// groups walks the grouped trees breadth first, and the removals of each.
func (w *walk) groups(start classTree) {
	known := map[topotree.Digest]bool{start.root.digest: true}
	frontier := []classTree{start}
	for level := 0; len(frontier) > 0 && !w.done; level++ {
		var next []classTree
		for _, q := range frontier {
			w.stats.Groups++
			if w.removes(q); w.done {
				return
			}
			if level == w.b.MaxGroups {
				continue
			}
			for _, g := range w.groupsOf(q) {
				if known[g.root.digest] {
					w.stats.Generated++
					w.stats.Duplicates++
					continue
				}
				known[g.root.digest] = true
				next = append(next, g)
			}
		}
		frontier = next
	}
}

// groupsOf returns all groups of q that fit, the measured ones first. It skips groups of all
// children of each parent, which equal the parent.
func (w *walk) groupsOf(q classTree) []classTree {
	levels := q.levels()
	var out []classTree
	try := func(x topotree.Transform) {
		if x.Op != topotree.OpGroup || x.D < 1 || x.D >= len(levels) {
			return
		}
		if g, ok := q.group(x, levels); ok {
			out = append(out, g)
		}
	}
	for _, x := range w.b.First {
		try(x)
	}
	for d := 1; d < len(levels); d++ {
		span := 0 // greatest common divisor of the child counts
		largest := 0
		for _, parent := range levels[d-1] {
			span = num.GCD(span, len(parent.kids))
			largest = max(largest, len(parent.kids))
		}
		for n := 2; n <= span; n++ {
			for t := 1; n*t <= span; t++ {
				x := topotree.Group(n, t, d)
				if span%(n*t) == 0 && n < largest && !slices.Contains(w.b.First, x) {
					try(x)
				}
			}
		}
	}
	return out
}

// removes walks the results of remove and only on one grouped tree.
func (w *walk) removes(q classTree) {
	newRemoval(w, q).walk()
	basics := w.tree.Palette()
	if len(basics) < 2 || len(basics) > w.b.MaxColors {
		return
	}
	for i := range basics {
		if w.done {
			return
		}
		color := topotree.BasicColor(i)
		root := q.only(q.root, color, map[*class]*class{})
		if root == nil {
			continue
		}
		alone := classTree{root: root, ops: append(slices.Clone(q.ops), topotree.Only(color)),
			interchangeable: q.interchangeable}
		newRemoval(w, alone).walk()
	}
}

// offer yields a candidate unless an equivalent one was yielded before.
func (w *walk) offer(digest topotree.Digest, pus int, spell func() *choice) {
	if pus < w.b.MinPUs {
		return
	}
	if !w.seen.Add(digest) {
		w.stats.Duplicates++
		return
	}
	if w.b.MaxTrees > 0 && w.stats.Kept == w.b.MaxTrees {
		w.stats.Truncated, w.done = true, true
		return
	}
	w.stats.Kept++
	t := w.tree
	if digest != t.Digest() {
		t = topotree.NewLazyTree(t, spell(), digest, pus)
	}
	w.done = !w.yield(t)
}
