package topotree

import (
	"slices"
	"sync"
)

// removal walks all combinations of removes on one classTree, the deepest level outermost: since
// children of one color are isomorphic, the right-most n in canonical order are the same whatever
// else is removed, so removes of different depths commute and n + m removes at one depth are
// remove(n+m). The product over the levels is therefore the whole closure.
type removal struct {
	w      *walk
	q      classTree
	levels []removalLevel // by depth
	first  []int          // by depth: where its classes start in index and counts
	index  []classAt      // every class
	counts []uint16       // children taken from each class
	kids   []childCount   // room for one node's children
	taken  uint64         // bit per class, as in index: loses children under the current choice

	once  sync.Once // guards bones
	bones *skeleton
}

// maxTracked is how many classes the bit sets can tell apart; machines with more (none symmetric
// enough to have many plans) do without the short cut of emit.
const maxTracked = 64

// classAt names a class by the depth and color of its nodes.
type classAt struct {
	depth int
	color Color
}

// removalLevel holds the classes of one depth and what they became under the current choice.
type removalLevel struct {
	old   []*class
	now   []class  // of the same index, reused from choice to choice
	reach []uint64 // per class: itself and all classes that are left below it
	runs  [][]run  // per class: its kids from left to right
	alike bool     // too many colors: remove acts on all of them together
	limit int      // alike: children every class can lose
}

// run is a stretch of alike kids: their class, by index in the next level, and how many.
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

// bit returns the bit of class i at depth d, 0 when there are too many classes.
func (r *removal) bit(d, i int) uint64 {
	if len(r.index) > maxTracked {
		return 0
	}
	return 1 << (r.first[d] + i)
}

func (r *removal) walk() { r.choose(len(r.levels)-2, 0) }

// choose sets how many children class i at depth d loses, then goes on to the next class, then to
// the depth above.
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

// rebuild makes class i of depth d from the current classes below it, without its n right-most
// kids.
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
		r.kids = append(r.kids, childCount{k.digest, count})
	}
	if d > 0 || !r.futile() {
		c.digest = merkle(r.q.labelOf(c), r.kids)
	}
}

// futile reports whether the current choice takes children from nodes that are gone altogether: the
// same tree comes out of the choice that leaves them alone.
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

// choice is what one candidate removes. It stays small, since an enumeration hands out a million.
type choice struct {
	of     *removal
	counts []uint16
}

// transforms spells the choice out, the deepest remove first.
func (c *choice) transforms() []Transform {
	r := c.of
	ops := slices.Clone(r.q.ops)
	for d := len(r.levels) - 2; d >= 0; d-- {
		at := r.first[d]
		counts := c.counts[at : at+len(r.levels[d].old)]
		if n := counts[0]; n > 0 && !slices.ContainsFunc(counts, func(m uint16) bool { return m != n }) {
			ops = append(ops, Remove(int(n), d+1))
			continue
		}
		for i, n := range counts {
			if n > 0 {
				ops = append(ops, RemoveColor(int(n), d+1, r.index[at+i].color))
			}
		}
	}
	return ops
}
