package pattern

import (
	"cmp"
	"regexp/syntax"
	"slices"

	"sandwich/runtime/grammar/internal/automaton"
)

// newAlphabet returns the alphabet of some expressions, whose programs must exist.
func newAlphabet(m *automaton.Meter, patterns []*pattern) *alphabet {
	type event struct {
		at  rune
		key uint64
	}
	events := []event{{at: 0}, {at: automaton.AnyRune[0].Hi + 1}, {at: automaton.AnyRune[1].Lo}}
	met := map[uint64]bool{}
	for _, p := range patterns {
		for _, prog := range p.programs(m) {
			for _, r := range prog.sets {
				key := r.Hash()
				if met[key] {
					continue
				}
				met[key] = true
				m.Work(8 * len(r))
				for _, x := range r {
					events = append(events, event{x.Lo, key}, event{x.Hi + 1, key})
				}
			}
		}
	}
	slices.SortFunc(events, func(a, b event) int { return cmp.Compare(a.at, b.at) })
	a, known, sum := &alphabet{}, map[uint64]int32{}, uint64(0)
	for i, e := range events {
		sum ^= e.key
		next := automaton.AnyRune[1].Hi + 1
		if i+1 < len(events) {
			next = events[i+1].at
		}
		switch {
		case next == e.at:
			continue
		case e.at == automaton.AnyRune[0].Hi+1:
			a.cuts, a.class = append(a.cuts, e.at), append(a.class, -1)
			continue
		}
		class, ok := known[sum]
		if !ok {
			class = int32(len(a.sets))
			known[sum], a.sets = class, append(a.sets, nil)
		}
		a.cuts, a.class = append(a.cuts, e.at), append(a.class, class)
		a.sets[class] = append(a.sets[class], automaton.RuneRange{Lo: e.at, Hi: next - 1})
	}
	for i := range a.sets {
		a.sets[i] = a.sets[i].InOrder()
	}
	m.Work(8 * len(events))
	return a
}

// of returns the class of a character.
func (a *alphabet) of(r rune) int32 {
	i, met := slices.BinarySearch(a.cuts, r)
	if !met {
		i--
	}
	return a.class[i]
}

// reads returns by class whether a set of characters contains it. The set must be a union of
// classes.
func (a *alphabet) reads(r automaton.Runes) []bool {
	out := make([]bool, len(a.sets))
	for _, x := range r {
		from, _ := slices.BinarySearch(a.cuts, x.Lo)
		for i := from; i < len(a.cuts) && a.cuts[i] <= x.Hi; i++ {
			if a.class[i] >= 0 {
				out[a.class[i]] = true
			}
		}
	}
	return out
}

// newCharReader returns the sets of a program, each once. Repetitions that were expanded share the
// ranges of their instructions, which identify equal sets.
func newCharReader(prog *syntax.Prog, m *automaton.Meter) *charReader {
	type ranges struct {
		first *rune
		size  int
		flags uint32
	}
	r := &charReader{Prog: prog, set: make([]int32, len(prog.Inst))}
	met := map[ranges]int32{}
	m.Take(16 * len(prog.Inst))
	for pc := range prog.Inst {
		in := &prog.Inst[pc]
		switch in.Op {
		case syntax.InstRune, syntax.InstRune1, syntax.InstRuneAny, syntax.InstRuneAnyNotNL:
		default:
			r.set[pc] = -1
			continue
		}
		var key ranges
		if len(in.Rune) > 0 {
			key = ranges{&in.Rune[0], len(in.Rune), in.Arg}
		}
		i, known := met[key]
		if !known {
			i = int32(len(r.sets))
			met[key], r.sets = i, append(r.sets, instRunes(in))
			m.Take(automaton.EntryCost + 8*len(r.sets[i]))
		}
		r.set[pc] = i
	}
	return r
}

// programs returns the program of an expression and those of its look-arounds.
func (p *pattern) programs(m *automaton.Meter) []*charReader {
	if p.readers == nil {
		p.readers = []*charReader{newCharReader(p.prog, m)}
		for _, l := range p.looks {
			p.readers = append(p.readers, newCharReader(l.prog, m))
		}
	}
	return p.readers
}
