package pattern

import (
	"cmp"
	"slices"
	"unicode/utf8"

	"sandwich/runtime/grammar/internal/automaton"
)

// listStates limits the states of a product that listed visits, and listSteps the characters that
// it tries for each.
const (
	listStates = 512
	listSteps  = 256
)

// Listed returns all texts, sorted by length and then by bytes, if there are at most limit. It
// returns false if there are more or if the automaton is too large.
func (b *Patterns) Listed(path string, t Texts, limit int) (list []string, ok bool) {
	if len(t.Want) == 0 && t.Most < 0 {
		return nil, false
	}
	p, err := b.productOf(path, t)
	if err != nil {
		return nil, false
	}
	defer func() {
		p.drop()
		if automaton.Refusal(recover()) != nil {
			list, ok = nil, false
		}
	}()
	l := lister{product: p, max: limit, numbers: map[string]int{}}
	l.number(p.begin())
	for i := 0; i < len(l.nodes); i++ {
		if len(l.nodes) > listStates || p.over(len(l.nodes)) {
			return nil, false
		}
		l.grow(i)
	}
	l.mark()
	if !l.write(0, nil) {
		return nil, false
	}
	slices.SortFunc(l.texts, func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) })
	return l.texts, true
}

// lister enumerates the texts of a product.
type lister struct {
	*product
	max     int
	numbers map[string]int // node numbers by position
	nodes   []listNode
	texts   []string
	begun   []bool // nodes on the current path
}

// listNode is a position of the product with its outgoing edges by character class.
type listNode struct {
	at   position
	ends bool
	live bool // a text ends here or after further characters
	next []listStep
}

type listStep struct{ letter, to int }

// number returns the node of a position.
func (l *lister) number(s position) int {
	l.key = s.appendKey(l.key[:0])
	n, met := l.numbers[string(l.key)]
	if !met {
		l.take(2*automaton.EntryCost + 4*len(s.each))
		n = len(l.nodes)
		l.numbers[string(l.key)] = n
		s.each = slices.Clone(s.each)
		l.nodes = append(l.nodes, listNode{at: s, ends: l.ends(s)})
	}
	return n
}

func (l *lister) grow(i int) {
	var next []listStep
	l.steps(l.nodes[i].at, func(letter int, at position) { next = append(next, listStep{letter, l.number(at)}) })
	l.nodes[i].next = next
}

// mark finds the live nodes.
func (l *lister) mark() {
	for changed := true; changed; {
		changed = false
		l.b.expend(len(l.nodes))
		for i := len(l.nodes) - 1; i >= 0; i-- {
			n := &l.nodes[i]
			if n.live {
				continue
			}
			n.live = n.ends || slices.ContainsFunc(n.next, func(s listStep) bool { return l.nodes[s.to].live })
			changed = changed || n.live
		}
	}
	l.begun = make([]bool, len(l.nodes))
}

// write adds the texts that continue from a node. It returns false if there are too many; a cycle
// has infinitely many.
func (l *lister) write(i int, text []byte) bool {
	n := &l.nodes[i]
	if l.b.expend(1); l.begun[i] {
		return false
	}
	if n.ends {
		if l.texts = append(l.texts, string(text)); len(l.texts) > l.max {
			return false
		}
	}
	l.begun[i] = true
	defer func() { l.begun[i] = false }()
	for _, s := range n.next {
		if !l.nodes[s.to].live {
			continue
		}
		tried := 0
		for _, r := range l.letters.sets[s.letter] {
			for c := r.Lo; c <= r.Hi; c++ {
				if tried++; tried > listSteps || !l.write(s.to, utf8.AppendRune(text, c)) {
					return false
				}
			}
		}
	}
	return true
}

// Shortest returns a shortest string of the set t. ok is false if the set is empty.
func (b *Patterns) Shortest(path string, t Texts) (text string, ok bool, err error) {
	p, err := b.productOf(path, t)
	if err != nil {
		return "", false, err
	}
	defer func() {
		p.drop()
		if over := automaton.Refusal(recover()); over != nil {
			err = automaton.Refuse(path, "%s", over.Message)
		}
	}()
	l := lister{product: p, numbers: map[string]int{}}
	l.number(p.begin())
	from := []listStep{{}} // by node: the class and the node that first led to it
	for i := 0; i < len(l.nodes); i++ {
		if p.over(len(l.nodes)) {
			return "", false, automaton.Refuse(path, tooManyStates)
		}
		if l.nodes[i].ends {
			return l.spelled(i, from), true, nil
		}
		l.grow(i)
		for _, s := range l.nodes[i].next {
			if s.to == len(from) {
				from = append(from, listStep{s.letter, i})
			}
		}
	}
	return "", false, nil
}

// spelled returns a text that leads to a node: it uses the first character of each class.
func (l *lister) spelled(node int, from []listStep) string {
	var out []rune
	for ; node > 0; node = from[node].to {
		out = append(out, l.letters.sets[from[node].letter][0].Lo)
	}
	slices.Reverse(out)
	return string(out)
}
