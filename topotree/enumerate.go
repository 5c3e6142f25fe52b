package topotree

import (
	"iter"
	"slices"
	"sync"
)

// Bounds limit the space that Enumerate walks. The zero value is the default space of the paper.
type Bounds struct {
	// MaxGroups is how many group levels a tree may have; 0 means 2, -1 means none.
	MaxGroups int
	// MaxColors is how many classes of one depth remove may treat separately; 0 means 3. Where a
	// depth has more, remove acts on all of them alike.
	MaxColors int
	// MinPUs leaves out trees with fewer PUs.
	MinPUs int
	// MaxTrees ends the walk after so many trees; 0 means no limit. Stats.Truncated says whether it
	// did.
	MaxTrees int
	// First are group transforms to try before all others, those that a measurement proposed.
	First []Transform
	// Stats, when not nil, is filled while the walk goes on.
	Stats *Stats
}

// Stats counts what Enumerate did.
type Stats struct {
	Generated  int  `json:"generated"`  // trees made by transforms
	Duplicates int  `json:"duplicates"` // of these, equivalent to an earlier one, by digest
	Kept       int  `json:"kept"`       // trees that the walk offered
	Groups     int  `json:"groups"`     // distinct trees before removing, the ungrouped one included
	Truncated  bool `json:"truncated,omitempty"`
}

// Enumerate walks every tree that transforms make of t, each equivalence class once (Sandwich
// 5.2.2): groups first, then only and remove, until no new candidate emerges. Every tree it offers
// is remove-derived; the empty remove counts, so t itself comes first. Trees are described by their
// transforms and built when first looked at, so that only digests accumulate. t must have nothing
// removed yet.
func Enumerate(t *Tree, b Bounds) iter.Seq[*Tree] {
	return func(yield func(*Tree) bool) {
		w := newWalk(t, b, yield)
		*w.stats = Stats{}
		start := classTree{
			root: classOf(t, t.Root(), map[Digest]*class{}), ops: t.transforms(),
			interchangeable: t.info.interchangeable,
		}
		w.groups(start)
	}
}

type walk struct {
	tree  *Tree
	b     Bounds
	stats *Stats
	yield func(*Tree) bool
	seen  digestSet
	done  bool

	mu    sync.Mutex // guards fulls
	fulls []*Tree    // the trees that are grouped and lost nothing
}

func newWalk(t *Tree, b Bounds, yield func(*Tree) bool) *walk {
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

// groups walks the group trees breadth first, and the removes of each.
func (w *walk) groups(start classTree) {
	known := map[Digest]bool{start.root.digest: true}
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

// groupsOf returns every group of q that fits, the measured ones first. A group of all children of
// every parent is left out: it is the parent again.
func (w *walk) groupsOf(q classTree) []classTree {
	levels := q.levels()
	var out []classTree
	try := func(x Transform) {
		if x.Op != OpGroup || x.D < 1 || x.D >= len(levels) {
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
		most := 0
		for _, parent := range levels[d-1] {
			span = gcd(span, len(parent.kids))
			most = max(most, len(parent.kids))
		}
		for n := 2; n <= span; n++ {
			for t := 1; n*t <= span; t++ {
				x := Group(n, t, d)
				if span%(n*t) == 0 && n < most && !slices.Contains(w.b.First, x) {
					try(x)
				}
			}
		}
	}
	return out
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// removes walks what remove and only make of one group tree.
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
		color := basicColor(i)
		root := q.only(q.root, color, map[*class]*class{})
		if root == nil {
			continue
		}
		alone := classTree{root: root, ops: append(slices.Clone(q.ops), Only(color)),
			interchangeable: q.interchangeable}
		newRemoval(w, alone).walk()
	}
}

// offer hands a candidate out unless an equivalent one came before.
func (w *walk) offer(digest Digest, pus int, spell func() *choice) {
	if pus < w.b.MinPUs {
		return
	}
	if !w.seen.add(digest) {
		w.stats.Duplicates++
		return
	}
	if w.b.MaxTrees > 0 && w.stats.Kept == w.b.MaxTrees {
		w.stats.Truncated, w.done = true, true
		return
	}
	w.stats.Kept++
	t := &Tree{base: w.tree.Base(), info: w.tree.info, choice: spell(), digest: digest, pus: pus}
	if digest == w.tree.digest {
		t = w.tree
	}
	w.done = !w.yield(t)
}
