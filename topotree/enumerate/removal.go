package enumerate

import (
	"slices"
	"sync"

	"sandwich/topotree"
	"sandwich/topotree/internal/merkle"
)

// removal enumerates all combinations of removes on one classTree, the deepest level outermost.
// Children of one color are isomorphic, so removes of different depths commute, and removes of n
// and m children at one depth are remove(n+m). The product over the levels is therefore complete.
type removal struct {
	w      *walk
	q      classTree
	levels []removalLevel    // by depth
	first  []int             // by depth: start of its classes in index and counts
	index  []classAt         // all classes
	counts []uint16          // children taken from each class
	kids   []merkle.Children // buffer for one node's children
	taken  uint64            // bit per class in index: loses children in the current choice

	once  sync.Once // protects bones
	bones *skeleton
}

// maxTracked is the number of classes that the bit sets can hold; machines with more do not use the
// shortcut of emit.
const maxTracked = 64

// classAt identifies a class by the depth and color of its nodes.
type classAt struct {
	depth int
	color topotree.Color
}

// removalLevel holds the classes of one depth and their state in the current choice.
type removalLevel struct {
	old   []*class
	now   []class  // with the same index, reused for each choice
	reach []uint64 // per class: itself and all remaining classes below it
	runs  [][]run  // per class: its kids from left to right
	alike bool     // too many colors: remove affects all of them
	limit int      // if alike: number of children that each class can lose
}

// run is a sequence of equal children: the index of their class in the next level, and their
// number.
type run struct{ class, count int }

func newRemoval(w *walk, q classTree) *removal {
	classes := q.levels()
	r := &removal{w: w, q: q, levels: make([]removalLevel, len(classes))}
	for d, old := range classes {
		l := &r.levels[d]
		l.old, l.now, l.reach = old, make([]class, len(old)), make([]uint64, len(old))
		choices := 0
		l.limit = len(old[0].kids) - 1
		for i, c := range old {
			l.now[i] = *c
			var runs []run
			for j, k := range c.kids {
				if j > 0 && k.class == c.kids[j-1].class {
					runs[len(runs)-1].count++
				} else {
					runs = append(runs, run{slices.Index(classes[d+1], k.class), 1})
				}
			}
			l.runs = append(l.runs, runs)
			l.limit = min(l.limit, len(c.kids)-1)
			if len(c.kids) > 1 {
				choices++
			}
			r.index = append(r.index, classAt{d, c.color})
		}
		l.alike = choices > w.b.MaxColors
		r.first = append(r.first, len(r.index)-len(old))
	}
	r.counts = make([]uint16, len(r.index))
	last := len(r.levels) - 1
	for i := range r.levels[last].reach {
		r.levels[last].reach[i] = r.bit(last, i)
	}
	return r
}

// bit returns the bit of class i at depth d, 0 if there are too many classes.
func (r *removal) bit(d, i int) uint64 {
	if len(r.index) > maxTracked {
		return 0
	}
	return 1 << (r.first[d] + i)
}

func (r *removal) walk() { r.choose(len(r.levels)-2, 0) }

// choose sets how many children class i at depth d loses, then continues with the next class, then
// with the depth above.
func (r *removal) choose(d, i int) {
	if d < 0 {
		r.emit()
		return
	}
	l := &r.levels[d]
	if l.alike {
		for n := 0; n <= l.limit && !r.w.done; n++ {
			for j := range l.old {
				r.rebuild(d, j, n)
			}
			r.choose(d-1, 0)
		}
		return
	}
	last := i == len(l.old)-1
	for n := 0; n < len(l.old[i].kids) && !r.w.done; n++ {
		r.rebuild(d, i, n)
		if last {
			r.choose(d-1, 0)
		} else {
			r.choose(d, i+1)
		}
	}
}

// rebuild makes class i of depth d from the current classes below it, without its last n children.
func (r *removal) rebuild(d, i, n int) {
	l, below := &r.levels[d], &r.levels[d+1]
	bit := r.bit(d, i)
	r.counts[r.first[d]+i] = uint16(n)
	if r.taken &^= bit; n > 0 {
		r.taken |= bit
	}
	c := &l.now[i]
	c.pus, l.reach[i] = 0, bit
	r.kids = r.kids[:0]
	left := len(l.old[i].kids) - n
	for _, run := range l.runs[i] {
		if left == 0 {
			break
		}
		k := &below.now[run.class]
		count := min(left, run.count)
		left -= count
		c.pus += count * k.pus
		l.reach[i] |= below.reach[run.class]
		r.kids = append(r.kids, merkle.Children{Hash: k.digest, Count: count})
	}
	if d > 0 || !r.futile() {
		c.digest = merkle.Sum(r.q.labelOf(c), r.kids)
	}
}

// futile reports whether the current choice removes children of nodes that are removed themselves.
// Another choice gives the same tree.
func (r *removal) futile() bool { return r.taken&^r.levels[0].reach[0] != 0 }

func (r *removal) emit() {
	r.w.stats.Generated++
	if r.futile() {
		r.w.stats.Duplicates++
		return
	}
	root := &r.levels[0].now[0]
	r.w.offer(root.digest, root.pus, func() *choice { return &choice{r, slices.Clone(r.counts)} })
}

// choice is the removals of one candidate. It is small, since an enumeration makes very many.
type choice struct {
	of     *removal
	counts []uint16
}

// Transforms returns the choice as transforms, the deepest remove first.
func (c *choice) Transforms() []topotree.Transform {
	r := c.of
	ops := slices.Clone(r.q.ops)
	for d := len(r.levels) - 2; d >= 0; d-- {
		at := r.first[d]
		counts := c.counts[at : at+len(r.levels[d].old)]
		if n := counts[0]; n > 0 && !slices.ContainsFunc(counts, func(m uint16) bool { return m != n }) {
			ops = append(ops, topotree.Remove(int(n), d+1))
			continue
		}
		for i, n := range counts {
			if n > 0 {
				ops = append(ops, topotree.RemoveColor(int(n), d+1, r.index[at+i].color))
			}
		}
	}
	return ops
}
