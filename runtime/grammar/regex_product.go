package grammar

import (
	"encoding/binary"
	"regexp/syntax"
	"slices"
)

// texts are the JSON strings that expressions of ECMA-262 match, all of want and none of unwanted,
// of least to most characters (most < 0: without end). It is the product of the expressions'
// deterministic automata, whose states are made as they are met.
type texts struct {
	want, unwanted []string
	least, most    int
	// Where mod is more than 0 the number of characters leaves rest when divided by it: texts of
	// other remainders are other texts.
	mod, rest int
}

// mostProduct is how many states such a product has at most, and productWork how often instructions
// may be asked what they read by all products of a grammar: some tenths of a second.
const (
	mostProduct = 8_000
	productWork = 1 << 25
)

// product writes the strings of several expressions.
func (b *builder) product(path string, t texts) (expr, error) {
	p := &product{b: b, texts: t, at: map[string]int32{}}
	for i, text := range append(slices.Clone(t.want), t.unwanted...) {
		prog, err := b.progOf(path, text, i >= len(t.want))
		if err != nil {
			return nil, err
		}
		p.progs = append(p.progs, prog)
		p.unwantedFrom = len(t.want)
		for j := range prog.Inst {
			for _, r := range instRunes(&prog.Inst[j]) {
				p.cuts = append(p.cuts, r.lo, r.hi+1)
			}
		}
		if i > 16 {
			return nil, refuse(path, "more than 16 expressions must hold together, which is not supported")
		}
	}
	p.cuts = append(p.cuts, 0, 0xD800, 0xE000)
	slices.Sort(p.cuts)
	p.cuts = slices.Compact(p.cuts)
	return automaton(func(b *builder, from, to int32) {
		first, last := b.state(), b.state()
		b.edge(from, first, byteRange{'"', '"'})
		b.edge(last, to, byteRange{'"', '"'})
		p.write(first, last)
		p.drop()
	}), nil
}

// take counts what the product takes while it is written, and drop gives that back.
func (p *product) take(n int) {
	p.taken += int64(n)
	if err := p.b.budget.take(int64(n)); err != nil {
		panic(err)
	}
}

func (p *product) drop() {
	p.b.budget.give(p.taken)
	p.taken, p.takes, p.sets, p.at, p.todo = 0, nil, nil, map[string]int32{}, nil
}

// threads are the instructions at which an expression may be, and whether it has matched already
// and whatever follows.
type threads struct {
	pcs     []uint32
	matched bool
}

// threadSets are the threads that an expression was met with, by number, and what is behind each
// range of characters: 1 + the number, 0 where nobody went.
type threadSets struct {
	all   []threads
	ends  []bool // by number: a text that ends here is matched
	ids   map[string]int32
	moves [][]int32
}

// position is a state of a product: the number of each expression's threads.
type position struct {
	each  []int32
	count int
	state int32
}

type product struct {
	texts
	b            *builder
	progs        []*syntax.Prog
	unwantedFrom int
	cuts         []rune       // the first characters of ranges that no expression parts
	takes        [][][]bool   // by expression, instruction and range: whether it reads it
	sets         []threadSets // by expression
	at           map[string]int32
	todo         []position
	taken        int64 // bytes
}

func (p *product) write(first, last int32) {
	for _, prog := range p.progs {
		p.takes = append(p.takes, p.tabulate(prog))
		p.sets = append(p.sets, threadSets{ids: map[string]int32{}})
	}
	start := position{}
	for i, prog := range p.progs {
		start.each = append(start.each, p.number(i, closure(prog, []uint32{uint32(prog.Start)}, true)))
	}
	p.b.eps(first, p.state(start))
	for len(p.todo) > 0 {
		s := p.todo[len(p.todo)-1]
		p.todo = p.todo[:len(p.todo)-1]
		if len(p.at) > mostProduct || p.b.work > productWork {
			panic(refuse("", "its expressions have too many states together, which is not supported"))
		}
		p.expand(s, last)
	}
}

func (p *product) expand(s position, last int32) {
	ok := s.count >= p.least && (p.mod == 0 || s.count%p.mod == p.rest)
	for i, t := range s.each {
		ok = ok && p.sets[i].ends[t] == (i < p.unwantedFrom)
	}
	if ok {
		p.b.eps(s.state, last)
	}
	if p.most >= 0 && s.count >= p.most {
		return
	}
	p.b.work += len(p.cuts) * len(s.each)
	ways := map[int32]runes{}
	var order []int32
	for i, lo := range p.cuts {
		hi := anyRune[1].hi
		if i+1 < len(p.cuts) {
			hi = p.cuts[i+1] - 1
		}
		if lo == 0xD800 || lo > hi {
			continue
		}
		next := position{count: p.counted(s.count + 1)}
		dead := false
		for j, t := range s.each {
			to := p.read(j, t, i)
			after := &p.sets[j].all[to]
			dead = dead || j < p.unwantedFrom && !after.matched && len(after.pcs) == 0
			next.each = append(next.each, to)
		}
		if dead {
			continue
		}
		to := p.state(next)
		if ways[to] == nil {
			order = append(order, to)
		}
		ways[to] = append(ways[to], runeRange{lo, hi})
	}
	for _, to := range order {
		p.b.write(inString(ways[to].inOrder()), s.state, to)
	}
}

// counted is a number of characters as far as it matters.
func (p *product) counted(n int) int {
	switch {
	case p.most >= 0:
		return n
	case p.mod == 0:
		return min(n, max(1, p.least))
	}
	for whole := (p.least + p.mod) / p.mod * p.mod; n >= whole+p.mod; {
		n -= p.mod
	}
	return n
}

// state finds or makes the state of a position.
func (p *product) state(s position) int32 {
	var key []byte
	for _, t := range s.each {
		key = binary.AppendUvarint(key, uint64(t))
	}
	key = binary.AppendUvarint(key, uint64(s.count))
	at, ok := p.at[string(key)]
	if !ok {
		p.take(128 + 4*len(s.each) + len(key))
		at = p.b.state()
		p.at[string(key)] = at
		s.state = at
		p.todo = append(p.todo, s)
	}
	return at
}

// number is that of some threads of an expression.
func (p *product) number(of int, t threads) int32 {
	var key []byte
	for _, pc := range t.pcs {
		key = binary.AppendUvarint(key, uint64(pc)+1)
	}
	if t.matched {
		key = append(key, 0)
	}
	s := &p.sets[of]
	id, ok := s.ids[string(key)]
	if !ok {
		p.take(4*len(p.cuts) + 8*len(t.pcs) + 160)
		id = int32(len(s.all))
		s.ids[string(key)] = id
		s.all, s.ends = append(s.all, t), append(s.ends, ends(p.progs[of], t))
		s.moves = append(s.moves, make([]int32, len(p.cuts)))
	}
	return id
}

// closure follows instructions that read nothing. begin tells that no character was read yet.
func closure(prog *syntax.Prog, pcs []uint32, begin bool) (t threads) {
	seen := map[uint32]bool{}
	var visit func(pc uint32)
	visit = func(pc uint32) {
		if seen[pc] {
			return
		}
		seen[pc] = true
		switch in := &prog.Inst[pc]; in.Op {
		case syntax.InstAlt, syntax.InstAltMatch:
			visit(in.Out)
			visit(in.Arg)
		case syntax.InstCapture, syntax.InstNop:
			visit(in.Out)
		case syntax.InstEmptyWidth:
			const starts = syntax.EmptyBeginText | syntax.EmptyBeginLine
			switch op := syntax.EmptyOp(in.Arg); {
			case op&starts != 0 && !begin:
			case op&(syntax.EmptyEndText|syntax.EmptyEndLine) != 0:
				t.pcs = append(t.pcs, pc) // it waits for the end
			default:
				visit(in.Out)
			}
		case syntax.InstMatch:
			t.matched = true
		case syntax.InstFail:
		default:
			t.pcs = append(t.pcs, pc)
		}
	}
	for _, pc := range pcs {
		visit(pc)
	}
	if t.matched {
		return threads{matched: true}
	}
	slices.Sort(t.pcs)
	return t
}

// tabulate says for each instruction which ranges of characters it reads.
func (p *product) tabulate(prog *syntax.Prog) [][]bool {
	out := make([][]bool, len(prog.Inst))
	for pc := range prog.Inst {
		in := &prog.Inst[pc]
		switch in.Op {
		case syntax.InstRune, syntax.InstRune1, syntax.InstRuneAny:
		default:
			continue
		}
		p.take(len(p.cuts))
		out[pc] = make([]bool, len(p.cuts))
		for _, x := range instRunes(in) {
			from, _ := slices.BinarySearch(p.cuts, x.lo)
			for i := from; i < len(p.cuts) && p.cuts[i] <= x.hi; i++ {
				out[pc][i] = true
			}
		}
	}
	return out
}

// read goes on behind a character of a range. A match may begin behind each.
func (p *product) read(of int, id int32, cut int) int32 {
	s := &p.sets[of]
	if s.all[id].matched {
		return id
	}
	if to := s.moves[id][cut]; to > 0 {
		return to - 1
	}
	t := s.all[id]
	next := []uint32{uint32(p.progs[of].Start)}
	for _, pc := range t.pcs {
		if takes := p.takes[of][pc]; takes != nil && takes[cut] {
			next = append(next, p.progs[of].Inst[pc].Out)
		}
	}
	p.b.work += len(t.pcs) + 8*len(next)
	to := p.number(of, closure(p.progs[of], next, false))
	s.moves[id][cut] = to + 1
	return to
}

// ends tells whether a text that ends here is matched.
func ends(prog *syntax.Prog, t threads) bool {
	if t.matched {
		return true
	}
	seen := map[uint32]bool{}
	var visit func(pc uint32) bool
	visit = func(pc uint32) bool {
		if seen[pc] {
			return false
		}
		seen[pc] = true
		switch in := &prog.Inst[pc]; in.Op {
		case syntax.InstMatch:
			return true
		case syntax.InstAlt, syntax.InstAltMatch:
			return visit(in.Out) || visit(in.Arg)
		case syntax.InstCapture, syntax.InstNop:
			return visit(in.Out)
		case syntax.InstEmptyWidth:
			const starts = syntax.EmptyBeginText | syntax.EmptyBeginLine
			return syntax.EmptyOp(in.Arg)&starts == 0 && visit(in.Out)
		}
		return false
	}
	return slices.ContainsFunc(t.pcs, visit)
}
