package grammar

import (
	"encoding/binary"
	"slices"
)

// texts are the JSON strings that expressions of ECMA-262 match, all of want and none of unwanted,
// of least to most characters (most < 0: without end). It is the product of the expressions'
// deterministic automata, whose states are made as they are met.
type texts struct {
	want, unwanted []string
	asked          []string // that may match or not, which sets tells
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
	// mostTogether is how many expressions it has.
	mostTogether = 64
)

// product writes the strings of several expressions.
func (b *builder) product(path string, t texts) (expr, error) {
	p, err := b.productOf(path, t)
	if err != nil {
		return nil, err
	}
	return inner{automaton(func(b *builder, from, to int32) {
		first, last := b.state(), b.state()
		b.edge(from, first, byteRange{'"', '"'})
		b.edge(last, to, byteRange{'"', '"'})
		p.write(first, last)
		p.drop()
	})}, nil
}

func (b *builder) productOf(path string, t texts) (*product, error) {
	p := &product{b: b, texts: t, at: map[string]int32{}}
	for i, text := range slices.Concat(t.want, t.unwanted, t.asked) {
		read, err := b.progOf(path, text, i >= len(t.want) && i < len(t.want)+len(t.unwanted))
		if err != nil {
			return nil, err
		}
		p.patterns, p.unwantedFrom, p.askedFrom = append(p.patterns, read), len(t.want), len(t.want)+
			len(t.unwanted)
		p.cuts = append(p.cuts, read.cutsOf()...)
		if i > mostTogether {
			return nil, refuse(path, "more than %d expressions must hold together, which is not supported",
				mostTogether)
		}
	}
	p.cuts = cutsIn(p.cuts)
	return p, nil
}

// cutsIn are cuts in order, with those at which characters that are none begin and end.
func cutsIn(cuts []rune) []rune {
	cuts = append(cuts, 0, 0xD800, 0xE000)
	slices.Sort(cuts)
	return slices.Compact(cuts)
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
	for _, d := range p.each {
		d.drop()
	}
	p.taken, p.each, p.at, p.todo = 0, nil, map[string]int32{}, nil
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
	patterns     []*pattern
	unwantedFrom int
	askedFrom    int
	cuts         []rune // the first characters of ranges that no expression parts
	each         []*dfa // by expression
	at           map[string]int32
	todo         []position
	taken        int64 // bytes
}

// begin is the position before a text.
func (p *product) begin() (s position) {
	for _, x := range p.patterns {
		d := newDFA(p.b, x, p.cuts)
		p.each = append(p.each, d)
		s.each = append(s.each, d.start())
	}
	return s
}

func (p *product) write(first, last int32) {
	p.b.eps(first, p.state(p.begin()))
	for len(p.todo) > 0 {
		s := p.todo[len(p.todo)-1]
		p.todo = p.todo[:len(p.todo)-1]
		if len(p.at) > mostProduct || p.b.work > productWork {
			panic(refuse("", "its expressions have too many states together, which is not supported"))
		}
		p.expand(s, last)
	}
}

// over tells whether a text may end at a position.
func (p *product) over(s position) bool {
	ok := s.count >= p.least && (p.mod == 0 || s.count%p.mod == p.rest)
	for i, t := range s.each[:p.askedFrom] {
		ok = ok && p.each[i].matches(t) == (i < p.unwantedFrom)
	}
	return ok
}

// steps calls yield with the position behind each range of characters, but for those behind which
// no text ends.
func (p *product) steps(s position, yield func(runeRange, position)) {
	if p.most >= 0 && s.count >= p.most {
		return
	}
	p.b.work += len(p.cuts) * len(s.each)
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
			d := p.each[j]
			to := d.next(t, int32(i))
			dead = dead || j < p.unwantedFrom && d.dead(to) || j >= p.unwantedFrom && j < p.askedFrom && d.sure(to)
			next.each = append(next.each, to)
		}
		if !dead {
			yield(runeRange{lo, hi}, next)
		}
	}
}

func (p *product) expand(s position, last int32) {
	if p.over(s) {
		p.b.eps(s.state, last)
	}
	ways := map[int32]runes{}
	var order []int32
	p.steps(s, func(r runeRange, next position) {
		to := p.state(next)
		if ways[to] == nil {
			order = append(order, to)
		}
		ways[to] = append(ways[to], r)
	})
	for _, to := range order {
		p.b.write(inString(ways[to].inOrder()), s.state, to)
	}
}

// inhabited tells whether there is a text.
func (b *builder) inhabited(path string, t texts) (ok bool, err error) {
	err = b.visit(path, t, func(*product, position) bool {
		ok = true
		return false
	})
	return ok, err
}

// sets are the sets of expressions that were asked for, by bits, which match a text together.
func (b *builder) sets(path string, t texts) (out []uint64, err error) {
	err = b.visit(path, t, func(p *product, s position) bool {
		set := uint64(0)
		for i, at := range s.each[p.askedFrom:] {
			if p.each[p.askedFrom+i].matches(at) {
				set |= 1 << i
			}
		}
		if !slices.Contains(out, set) {
			out = append(out, set)
		}
		return true
	})
	slices.Sort(out)
	return out, err
}

// visit calls yield with the positions of a product at which a text may end, until it says no.
func (b *builder) visit(path string, t texts, yield func(*product, position) bool) (err error) {
	p, err := b.productOf(path, t)
	if err != nil {
		return err
	}
	defer func() {
		p.drop()
		switch over := recover().(type) {
		case nil:
		case *Error:
			err = refuse(path, "%s", over.Message)
		default:
			panic(over)
		}
	}()
	todo := []position{p.begin()}
	met := map[string]bool{}
	for len(todo) > 0 {
		s := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		key := string(s.key())
		if met[key] {
			continue
		}
		met[key] = true
		p.take(64 + len(key))
		if len(met) > mostProduct || b.work > productWork {
			return refuse(path, "its expressions have too many states together, which is not supported")
		}
		if p.over(s) && !yield(p, s) {
			return nil
		}
		p.steps(s, func(_ runeRange, next position) { todo = append(todo, next) })
	}
	return nil
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

// key tells positions apart.
func (s *position) key() (key []byte) {
	for _, t := range s.each {
		key = binary.AppendUvarint(key, uint64(t))
	}
	return binary.AppendUvarint(key, uint64(s.count))
}

// state finds or makes the state of a position.
func (p *product) state(s position) int32 {
	key := s.key()
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
