package pattern

import (
	"encoding/binary"
	"slices"

	"sandwich/runtime/grammar/internal/automaton"
)

// maxProduct limits the states of a product, productBytes its memory, and productWork the steps of
// all products of a grammar. A keyword that exceeds them is unsupported; the limits of a
// compilation are larger. maxTogether limits the expressions of a product.
const (
	maxProduct   = 8_000
	productBytes = 12 << 20
	productWork  = 8 << 20
	maxTogether  = 64
)

// tooManyStates is the error for products that exceed these limits.
const tooManyStates = "the combined expressions have too many states, which is not supported"

// Product returns an expression for a set of texts.
func (b *Patterns) Product(path string, t Texts) (automaton.Expr, error) {
	p, err := b.productOf(path, t)
	if err != nil {
		return nil, err
	}
	return automaton.Inner{Body: automaton.Automaton(func(b *automaton.Builder, from, to int32) {
		first, last := b.State(), b.State()
		b.Edge(from, first, automaton.ByteRange{Lo: '"', Hi: '"'})
		b.Edge(last, to, automaton.ByteRange{Lo: '"', Hi: '"'})
		p.write(first, last)
		p.drop()
	})}, nil
}

func (b *Patterns) productOf(path string, t Texts) (*product, error) {
	p := &product{b: b, Texts: t, at: map[string]int32{}, read: map[string]automaton.Expr{}, unwantedFrom: len(t.Want),
		askedFrom: len(t.Want) + len(t.Unwanted)}
	all := slices.Concat(t.Want, t.Unwanted, t.Asked)
	if len(all) > maxTogether {
		return nil, automaton.Refuse(path, "more than %d expressions apply to one string, which is not supported",
			maxTogether)
	}
	for i, text := range all {
		read, err := b.progOf(path, text, i >= p.unwantedFrom && i < p.askedFrom)
		if err != nil {
			return nil, err
		}
		p.patterns = append(p.patterns, read)
	}
	return p, nil
}

// product is the product of the automata of some expressions.
type product struct {
	Texts
	b            *Patterns
	patterns     []*pattern
	unwantedFrom int
	askedFrom    int
	letters      *alphabet
	each         []*dfa // by expression
	at           map[string]int32
	read         map[string]automaton.Expr // by character classes
	todo         []position
	next         position // the position after a step, reused
	key          []byte
	taken        int   // bytes
	before       int64 // bytes in use when the product was started
}

// position is a state of a product: the state of each automaton and the number of characters.
type position struct {
	each  []int32
	count int
	state int32
}

// take charges n bytes of the product; drop releases all of them.
func (p *product) take(n int) {
	p.taken += n
	p.b.Meter.Take(n)
}

func (p *product) drop() {
	p.b.Meter.Give(p.taken)
	for _, d := range p.each {
		d.drop()
	}
	p.taken, p.each, p.at, p.todo, p.read = 0, nil, map[string]int32{}, nil, map[string]automaton.Expr{}
}

// begin returns the position before a text.
func (p *product) begin() (s position) {
	p.before = p.b.Meter.Used
	p.letters = newAlphabet(p.b.Meter, p.patterns)
	for _, x := range p.patterns {
		d := newDFA(p.b, x, p.letters)
		p.each = append(p.each, d)
		s.each = append(s.each, d.start())
	}
	return s
}

func (p *product) write(first, last int32) {
	p.b.Eps(first, p.state(p.begin()))
	for len(p.todo) > 0 {
		s := p.todo[len(p.todo)-1]
		p.todo = p.todo[:len(p.todo)-1]
		if p.over(len(p.at)) {
			panic(automaton.Refuse("", tooManyStates))
		}
		p.expand(s, last)
	}
}

// over reports whether a product with the given number of states exceeds its limits.
func (p *product) over(states int) bool {
	return states > maxProduct || p.b.spent > productWork || p.b.Meter.Used-p.before > productBytes
}

// ends reports whether a text may end at a position.
func (p *product) ends(s position) bool {
	ok := s.count >= p.Least && (p.Mod == 0 || s.count%p.Mod == p.Rest)
	for i, t := range s.each[:p.askedFrom] {
		ok = ok && p.each[i].matches(t) == (i < p.unwantedFrom)
	}
	return ok
}

// steps calls yield with the position after each character class, except those from which no text
// can be completed. The position is valid until yield returns.
func (p *product) steps(s position, yield func(letter int, next position)) {
	if p.Most >= 0 && s.count >= p.Most {
		return
	}
	p.b.expend(len(p.letters.sets) * len(s.each))
	for letter := range p.letters.sets {
		p.next.count, p.next.each = p.counted(s.count+1), p.next.each[:0]
		dead := false
		for j, t := range s.each {
			d := p.each[j]
			to := d.next(t, int32(letter))
			dead = dead || j < p.unwantedFrom && d.dead(to) || j >= p.unwantedFrom && j < p.askedFrom && d.sure(to)
			p.next.each = append(p.next.each, to)
		}
		if !dead {
			yield(letter, p.next)
		}
	}
}

func (p *product) expand(s position, last int32) {
	if p.ends(s) {
		p.b.Eps(s.state, last)
	}
	ways := map[int32][]byte{} // by target state: the classes that lead to it
	var order []int32
	p.steps(s, func(letter int, next position) {
		to := p.state(next)
		if ways[to] == nil {
			order = append(order, to)
		}
		ways[to] = binary.AppendUvarint(ways[to], uint64(letter))
	})
	for _, to := range order {
		p.b.Write(p.reading(ways[to]), s.state, to)
	}
}

// reading returns an expression for the characters of some classes, which are encoded as varints.
func (p *product) reading(letters []byte) automaton.Expr {
	e, met := p.read[string(letters)]
	if !met {
		var r automaton.Runes
		for rest := letters; len(rest) > 0; {
			letter, n := binary.Uvarint(rest)
			rest = rest[n:]
			r = append(r, p.letters.sets[letter]...)
		}
		p.take(automaton.EntryCost + len(letters) + 8*len(r))
		e = automaton.InString(r.InOrder())
		p.read[string(letters)] = e
	}
	return e
}

// Inhabited reports whether the set contains a text.
func (b *Patterns) Inhabited(path string, t Texts) (ok bool, err error) {
	err = b.visit(path, t, func(*product, position) bool {
		ok = true
		return false
	})
	return ok, err
}

// Sets returns the combinations of t.asked, as bit sets, that texts of the set match.
func (b *Patterns) Sets(path string, t Texts) (out []uint64, err error) {
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

// visit calls yield with the positions of a product at which a text may end, until yield returns
// false.
func (b *Patterns) visit(path string, t Texts, yield func(*product, position) bool) (err error) {
	p, err := b.productOf(path, t)
	if err != nil {
		return err
	}
	defer func() {
		p.drop()
		if over := automaton.Refusal(recover()); over != nil {
			err = automaton.Refuse(path, "%s", over.Message)
		}
	}()
	met := map[string]bool{}
	meet := func(s position) {
		p.key = s.appendKey(p.key[:0])
		if met[string(p.key)] {
			return
		}
		p.take(automaton.EntryCost + 4*len(s.each) + len(p.key))
		met[string(p.key)] = true
		s.each = slices.Clone(s.each)
		p.todo = append(p.todo, s)
	}
	for meet(p.begin()); len(p.todo) > 0; {
		s := p.todo[len(p.todo)-1]
		p.todo = p.todo[:len(p.todo)-1]
		if p.over(len(met)) {
			return automaton.Refuse(path, tooManyStates)
		}
		if p.ends(s) && !yield(p, s) {
			return nil
		}
		p.steps(s, func(_ int, next position) { meet(next) })
	}
	return nil
}

// counted returns a number of characters, reduced to what distinguishes positions.
func (p *product) counted(n int) int {
	switch {
	case p.Most >= 0:
		return n
	case p.Mod == 0:
		return min(n, max(1, p.Least))
	}
	for whole := (p.Least + p.Mod) / p.Mod * p.Mod; n >= whole+p.Mod; {
		n -= p.Mod
	}
	return n
}

// appendKey appends a key that identifies the position.
func (s *position) appendKey(key []byte) []byte {
	for _, t := range s.each {
		key = binary.AppendUvarint(key, uint64(t))
	}
	return binary.AppendUvarint(key, uint64(s.count))
}

// state returns the state of a position.
func (p *product) state(s position) int32 {
	p.key = s.appendKey(p.key[:0])
	at, ok := p.at[string(p.key)]
	if !ok {
		p.take(automaton.EntryCost + 4*len(s.each) + len(p.key))
		at = p.b.State()
		p.at[string(p.key)] = at
		s.state, s.each = at, slices.Clone(s.each)
		p.todo = append(p.todo, s)
	}
	return at
}
