package pattern

import (
	"encoding/binary"
	"regexp/syntax"

	"sandwich/runtime/grammar/internal/automaton"
)

// newDFA returns the automaton of a parsed expression, over an alphabet of this and other
// expressions.
func newDFA(b *Patterns, p *pattern, letters *alphabet) *dfa {
	d := &dfa{b: b, looks: p.looks, letters: letters, musts: [][]promise{nil}, mustAt: map[string]int32{"": 0},
		ends: map[int32]bool{}}
	for _, prog := range p.programs(b.Meter) {
		d.add(prog)
	}
	d.front = atFront(p.prog, uint32(p.prog.Start), 0)
	return d
}

// atFront reports whether all paths from an instruction require the start of the text.
func atFront(prog *syntax.Prog, pc uint32, depth int) bool {
	switch in := &prog.Inst[pc]; in.Op {
	case syntax.InstAlt, syntax.InstAltMatch:
		return depth < 100 && atFront(prog, in.Out, depth+1) && atFront(prog, in.Arg, depth+1)
	case syntax.InstCapture, syntax.InstNop:
		return depth < 100 && atFront(prog, in.Out, depth+1)
	case syntax.InstEmptyWidth:
		return syntax.EmptyOp(in.Arg)&(syntax.EmptyBeginText|syntax.EmptyBeginLine) != 0
	case syntax.InstFail:
		return true
	}
	return false
}

// add adds the program of the expression or of a look-around.
func (d *dfa) add(prog *charReader) {
	d.take(28*len(prog.Inst) + len(prog.sets)*len(d.letters.sets))
	x := dfaProgram{prog: prog.Prog, ids: map[string]int32{}, moves: map[dfaMove]int32{},
		takes: make([][]bool, len(prog.Inst)), marks: make([]uint32, len(prog.Inst))}
	sets := make([][]bool, len(prog.sets))
	for i, r := range prog.sets {
		sets[i] = d.letters.reads(r)
	}
	for pc, set := range prog.set {
		if set >= 0 {
			x.takes[pc] = sets[set]
		}
	}
	d.progs = append(d.progs, x)
}

// take charges n bytes of the automaton; drop releases all of them.
func (d *dfa) take(n int) {
	d.taken += n
	d.b.Meter.Take(n)
}

func (d *dfa) drop() {
	d.b.Meter.Give(d.taken)
	*d = dfa{}
}

// start returns the state before a text.
func (d *dfa) start() int32 {
	t := threads{behind: make([]int32, len(d.looks))}
	for k := range d.looks {
		if d.looks[k].behind {
			t.behind[k] = d.begin(1+k, true, t.holds)
			t.holds |= d.held(k, t.behind[k])
		}
	}
	x := d.closure(0, []thread{{pc: uint32(d.progs[0].prog.Start)}}, true, t.holds)
	x.behind, x.holds = t.behind, t.holds
	return d.number(0, x)
}

func (d *dfa) held(look int, at int32) uint64 {
	if d.progs[1+look].all[at].matched {
		return 1 << look
	}
	return 0
}

// begin returns the initial state of an expression.
func (d *dfa) begin(of int, front bool, holds uint64) int32 {
	return d.number(of, d.closure(of, []thread{{pc: uint32(d.progs[of].prog.Start)}}, front, holds))
}

// sure reports whether the expression matches, whatever follows.
func (d *dfa) sure(id int32) bool { return d.progs[0].all[id].matched }

// dead reports whether no continuation matches.
func (d *dfa) dead(id int32) bool {
	t := &d.progs[0].all[id]
	return d.front && !t.matched && len(t.list) == 0
}

// next returns the state after a character of a class. A match may begin after each character.
func (d *dfa) next(id, letter int32) int32 {
	if d.sure(id) {
		return id
	}
	key := dfaMove{id: id, letter: letter}
	if to, met := d.progs[0].moves[key]; met {
		return to
	}
	old := d.progs[0].all[id].behind
	behind, holds := make([]int32, len(old)), uint64(0)
	for k := range d.looks {
		if d.looks[k].behind {
			behind[k] = d.step(1+k, old[k], letter, holds)
			holds |= d.held(k, behind[k])
		}
	}
	t := d.moved(0, id, letter, holds)
	t.behind, t.holds = behind, holds
	to := d.number(0, t)
	d.take(automaton.EntryCost)
	d.progs[0].moves[key] = to
	return to
}

// step is next for the expression of a look-around.
func (d *dfa) step(of int, id, letter int32, holds uint64) int32 {
	key := dfaMove{id, letter, holds}
	if to, met := d.progs[of].moves[key]; met {
		return to
	}
	to := d.number(of, d.moved(of, id, letter, holds))
	d.take(automaton.EntryCost)
	d.progs[of].moves[key] = to
	return to
}

// moved returns the threads after a character.
func (d *dfa) moved(of int, id, letter int32, holds uint64) threads {
	p := &d.progs[of]
	var next []thread
	if of == 0 || d.looks[of-1].behind {
		next = append(next, thread{pc: uint32(p.prog.Start)}) // a match may begin after any character
	}
	for _, t := range p.all[id].list {
		in := &p.prog.Inst[t.pc]
		if in.Op != syntax.InstMatch && (p.takes[t.pc] == nil || !p.takes[t.pc][letter]) {
			continue
		}
		must, ok := d.kept(t.must, letter, holds)
		switch {
		case !ok:
		case in.Op == syntax.InstMatch:
			next = append(next, thread{t.pc, must})
		default:
			next = append(next, thread{in.Out, must})
		}
	}
	d.b.expend(len(p.all[id].list) + 8*len(next))
	return d.closure(of, next, false, holds)
}

// closure follows instructions that read no character. front means that no character has been read;
// holds are the look-behinds that hold.
func (d *dfa) closure(of int, from []thread, front bool, holds uint64) (t threads) {
	p := &d.progs[of]
	prog := p.prog
	p.mark++
	var seen map[thread]bool // visited threads with promises
	n := 0
	visited := func(at thread) bool {
		if at.must == 0 {
			met := p.marks[at.pc] == p.mark
			p.marks[at.pc] = p.mark
			return met
		}
		if seen == nil {
			seen = map[thread]bool{}
		}
		met := seen[at]
		seen[at] = true
		return met
	}
	var visit func(at thread)
	visit = func(at thread) {
		if visited(at) {
			return
		}
		if n++; n > maxThreads && len(seen) > maxThreads {
			panic(automaton.Refuse("", "the look-around of the expression has too many states, which is not supported"))
		}
		in := &prog.Inst[at.pc]
		out := thread{in.Out, at.must}
		switch in.Op {
		case syntax.InstAlt, syntax.InstAltMatch:
			visit(out)
			visit(thread{in.Arg, at.must})
		case syntax.InstCapture:
			ok := true
			if k := int32(in.Arg/2) - 1; k >= 0 && in.Arg%2 == 0 {
				out.must, ok = d.asked(at.must, k, front, holds)
			}
			if ok {
				visit(out)
			}
		case syntax.InstNop:
			visit(out)
		case syntax.InstEmptyWidth:
			const starts = syntax.EmptyBeginText | syntax.EmptyBeginLine
			switch op := syntax.EmptyOp(in.Arg); {
			case op&starts != 0 && !front:
			case op&(syntax.EmptyEndText|syntax.EmptyEndLine) != 0:
				t.list = append(t.list, at) // it matches at the end of the text
			default:
				visit(out)
			}
		case syntax.InstMatch:
			if at.must == 0 {
				t.matched = true
			} else {
				t.list = append(t.list, at)
			}
		case syntax.InstFail:
		default:
			t.list = append(t.list, at)
		}
	}
	for _, at := range from {
		visit(at)
	}
	d.b.expend(n)
	if t.matched && (of == 0 || !d.looks[of-1].behind) {
		return threads{matched: true}
	}
	t.list, t.front = d.fewest(t.list), front
	return t
}

// number returns the number of a set of threads of an expression.
func (d *dfa) number(of int, t threads) int32 {
	var key []byte
	for _, x := range t.list {
		key = binary.AppendUvarint(binary.AppendUvarint(key, uint64(x.pc)+1), uint64(x.must))
	}
	if t.matched {
		key = append(key, 0)
	}
	if t.front {
		key = append(key, 0, 0)
	}
	if of == 0 && !(t.matched && len(t.list) == 0) {
		for _, x := range t.behind {
			key = binary.AppendUvarint(key, uint64(x)+1)
		}
	}
	p := &d.progs[of]
	id, ok := p.ids[string(key)]
	if !ok {
		d.take(8*len(t.list) + 4*len(t.behind) + len(key) + 200)
		id = int32(len(p.all))
		p.ids[string(key)], p.all = id, append(p.all, t)
	}
	return id
}

// matches reports whether the expression matches a text that ends here.
func (d *dfa) matches(id int32) bool {
	if ok, met := d.ends[id]; met {
		return ok
	}
	ok := d.over(0, id, d.progs[0].all[id].holds)
	d.ends[id] = ok
	return ok
}

// has reports whether the expression matches a text.
func (d *dfa) has(text string) bool {
	at := d.start()
	for _, r := range text {
		if d.sure(at) || d.dead(at) {
			break
		}
		at = d.next(at, d.letters.of(r))
	}
	return d.matches(at)
}
