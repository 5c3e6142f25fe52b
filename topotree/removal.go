package topotree

import "slices"

// removal walks all combinations of removes on one classTree, the deepest level outermost: since children of one
// color are isomorphic, the right-most n in canonical order are the same whatever else is removed, so removes of
// different depths commute and n + m removes at one depth are remove(n+m). The product over the levels is therefore
// the whole closure.
type removal struct {
	w      *walk
	q      classTree
	levels []removalLevel // by depth
	counts [][]int        // by depth of the parents: children taken from each class
}

// removalLevel holds the classes of one depth and what they became under the current choice.
type removalLevel struct {
	old   []*class
	now   []class // of the same index, reused from choice to choice
	kidAt [][]int // per class: index of each kid in the next level
	alike bool    // too many colors: remove acts on all of them together
	limit int     // alike: children every class can lose
	buf   [][]kid // per class: room for the kids of now
}

func newRemoval(w *walk, q classTree) *removal {
	classes := q.levels()
	r := &removal{w: w, q: q, levels: make([]removalLevel, len(classes)), counts: make([][]int, len(classes))}
	for d, old := range classes {
		l := &r.levels[d]
		l.old, l.now = old, make([]class, len(old))
		r.counts[d] = make([]int, len(old))
		choices := 0
		l.limit = len(old[0].kids) - 1
		for i, c := range old {
			l.now[i] = *c
			at := make([]int, len(c.kids))
			for j, k := range c.kids {
				at[j] = slices.Index(classes[d+1], k.class)
			}
			l.kidAt = append(l.kidAt, at)
			l.buf = append(l.buf, make([]kid, len(c.kids)))
			l.limit = min(l.limit, len(c.kids)-1)
			if len(c.kids) > 1 {
				choices++
			}
		}
		l.alike = choices > w.b.MaxColors
	}
	return r
}

func (r *removal) walk() { r.choose(len(r.levels)-2, 0) }

// choose sets how many children class i at depth d loses, then goes on to the next class, then to the depth above.
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

// rebuild makes class i of depth d from the current classes below it, without its n right-most kids.
func (r *removal) rebuild(d, i, n int) {
	l, below := &r.levels[d], &r.levels[d+1]
	r.counts[d][i] = n
	c := &l.now[i]
	c.kids = l.buf[i][:len(l.old[i].kids)-n]
	for j := range c.kids {
		c.kids[j] = kid{&below.now[l.kidAt[i][j]], l.old[i].kids[j].pos}
	}
	r.q.seal(c)
}

func (r *removal) emit() {
	r.w.stats.Generated++
	root := &r.levels[0].now[0]
	r.w.offer(root.digest, root.pus, r.ops)
}

// ops spells the current choice as transforms, the deepest first.
func (r *removal) ops() []Transform {
	ops := slices.Clone(r.q.ops)
	for d := len(r.levels) - 2; d >= 0; d-- {
		counts := r.counts[d]
		if n := counts[0]; n > 0 && !slices.ContainsFunc(counts, func(m int) bool { return m != n }) {
			ops = append(ops, Remove(n, d+1))
			continue
		}
		for i, n := range counts {
			if n > 0 {
				ops = append(ops, RemoveColor(n, d+1, r.levels[d].old[i].color))
			}
		}
	}
	return slices.Clip(ops)
}
