package pattern

import (
	"encoding/binary"
	"regexp/syntax"
	"slices"
)

// kept returns the promises after a character. It returns false if one of them is broken.
func (d *dfa) kept(must, letter int32, holds uint64) (int32, bool) {
	if must == 0 {
		return 0, true
	}
	out, ok := int32(0), true
	for _, m := range d.musts[must] {
		out, ok = d.with(out, m.look, d.step(1+int(m.look), m.at, letter, holds))
		if !ok {
			return 0, false
		}
	}
	return out, true
}

// with adds a promise to a set. It returns false if the promise is already broken.
func (d *dfa) with(must, look, at int32) (int32, bool) {
	t := &d.progs[1+look].all[at]
	switch {
	case t.matched:
		return must, !d.looks[look].not
	case len(t.list) == 0:
		return must, d.looks[look].not
	}
	p := promise{look, at}
	list := d.musts[must]
	i, met := slices.BinarySearchFunc(list, p, comparePromises)
	if met {
		return must, true
	}
	list = slices.Insert(slices.Clone(list), i, p)
	var key []byte
	for _, m := range list {
		key = binary.AppendUvarint(binary.AppendUvarint(key, uint64(m.look)), uint64(m.at))
	}
	id, met := d.mustAt[string(key)]
	if !met {
		d.take(96 + 10*len(list))
		id = int32(len(d.musts))
		d.musts, d.mustAt[string(key)] = append(d.musts, list), id
	}
	return id, true
}

func comparePromises(a, b promise) int {
	if a.look != b.look {
		return int(a.look - b.look)
	}
	return int(a.at - b.at)
}

// asked returns the promises after a look-around is asserted. It returns false if it does not hold.
func (d *dfa) asked(must, look int32, front bool, holds uint64) (int32, bool) {
	if d.looks[look].behind {
		return must, holds>>look&1 != 0 != d.looks[look].not
	}
	return d.with(must, look, d.begin(int(look)+1, front, holds))
}

// fewest sorts threads and drops those with more promises than another thread at the same
// instruction.
func (d *dfa) fewest(list []thread) []thread {
	slices.SortFunc(list, func(a, b thread) int {
		if a.pc != b.pc {
			return int(a.pc) - int(b.pc)
		}
		return int(a.must - b.must)
	})
	out := list[:0:0]
	for i, t := range list {
		less := func(x thread) bool {
			return x.pc == t.pc && x.must != t.must && len(d.musts[x.must]) < len(d.musts[t.must]) &&
				!slices.ContainsFunc(d.musts[x.must], func(p promise) bool {
					return !slices.Contains(d.musts[t.must], p)
				})
		}
		from, to := max(0, i-32), min(len(list), i+33)
		if t.must == 0 || !slices.ContainsFunc(list[from:to], less) {
			out = append(out, t)
		}
	}
	return out
}

// over reports whether an expression matches at the end of the text.
func (d *dfa) over(of int, id int32, holds uint64) bool {
	if d.progs[of].all[id].matched {
		return true
	}
	prog, front := d.progs[of].prog, d.progs[of].all[id].front
	seen := map[thread]bool{}
	var visit func(at thread) bool
	visit = func(at thread) bool {
		if seen[at] {
			return false
		}
		seen[at] = true
		in := &prog.Inst[at.pc]
		out := thread{in.Out, at.must}
		switch in.Op {
		case syntax.InstMatch:
			return !slices.ContainsFunc(d.musts[at.must], func(p promise) bool {
				return d.over(1+int(p.look), p.at, holds) == d.looks[p.look].not
			})
		case syntax.InstAlt, syntax.InstAltMatch:
			return visit(out) || visit(thread{in.Arg, at.must})
		case syntax.InstCapture:
			ok := true
			if k := int32(in.Arg/2) - 1; k >= 0 && in.Arg%2 == 0 {
				out.must, ok = d.asked(at.must, k, front, holds)
			}
			return ok && visit(out)
		case syntax.InstNop:
			return visit(out)
		case syntax.InstEmptyWidth:
			const starts = syntax.EmptyBeginText | syntax.EmptyBeginLine
			return (front || syntax.EmptyOp(in.Arg)&starts == 0) && visit(out)
		}
		return false
	}
	for i := 0; i < len(d.progs[of].all[id].list); i++ {
		if visit(d.progs[of].all[id].list[i]) {
			return true
		}
	}
	return false
}
