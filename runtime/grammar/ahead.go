package grammar

// heavyWays is how many ways lead out of a state of many words whose tokens are found ahead,
// mostHeavy how many such states a program has at most, and mostAhead how many nodes of tries are
// visited for all of them.
const (
	heavyWays = 8
	mostHeavy = 256
	mostAhead = 1 << 21
)

// followed are the tokens of a trie that lead from a state of many words to places inside of words:
// what walker.follow adds whatever lies below on the stack. It is found when an answer begins, by
// the goroutine of its request, so that no mask waits for thousands of words.
type followed struct {
	bits  []uint64
	worst float64 // the greatest distance after one of the tokens
	exits []exit
}

// exit is a node of a trie at which a word may be over.
type exit struct{ node, to int32 }

type followedKey struct {
	of  *trie
	top int32
}

// mostExits bounds the exits that are kept; with more of them there is little to gain.
const mostExits = 1 << 12

// ahead follows the tokens of a vocabulary from all states of many words.
func (g *Grammar) ahead(v *Vocab) {
	s := &g.masks
	s.mu.Lock()
	defer s.mu.Unlock()
	left := mostAhead
	for _, top := range g.program.heavy {
		if t := &g.program.tops[top]; !t.simple || t.count < heavyWays {
			continue // merged with others, or pruned
		}
		for _, of := range []*trie{&v.json.plain, &v.json.rest, &v.json.blanks} {
			key := followedKey{of, top}
			size := int64(8*words64(v.size) + 8*mostExits)
			if _, met := s.followed[key]; met || len(of.tokens) == 0 || !s.room(size) {
				continue
			}
			f := &followed{bits: make([]uint64, words64(v.size))}
			f.follow(g.program, of, 0, top, &left)
			if len(f.exits) > mostExits || left < 0 {
				s.memory.give(size)
				s.bytes -= size
				continue
			}
			if s.followed == nil {
				s.followed = map[followedKey]*followed{}
			}
			s.followed[key] = f
		}
	}
}

// follow adds the tokens below a node, and stops after so many nodes are left.
func (f *followed) follow(p *program, t *trie, node, top int32, left *int) {
	for c, to := range p.inStep(t, node, top) {
		if *left--; *left < 0 || len(f.exits) > mostExits {
			return
		}
		if !p.tops[to].simple {
			f.exits = append(f.exits, exit{c, to})
			continue
		}
		n := &t.nodes[c]
		if n.to > n.from {
			f.worst = max(f.worst, p.tops[to].dist)
			for _, id := range t.tokens[n.from:n.to] {
				f.bits[id/64] |= 1 << (id % 64)
			}
		}
		if first, end := t.children(c); first < end {
			f.follow(p, t, c, to, left)
		}
	}
}

// takeAhead adds the tokens of the trie that were found ahead for a state; false where they were
// not, or where some of them lead too far from the end.
func (w *walker) takeAhead(s *state) bool {
	if len(s.items) != 1 || s.loop != nil {
		return false
	}
	top, base := s.items[0].state, s.items[0].parent
	t := &w.m.p.tops[top]
	if !t.simple || t.count < heavyWays {
		return false
	}
	f := w.of.masks.found(followedKey{w.trie, top})
	below := 0.0
	if base != nil {
		below = base.cost
	}
	if f == nil || f.worst+below > w.most {
		return false
	}
	var all byteSet
	for _, e := range w.m.p.edges[t.first : t.first+int32(t.count)] {
		all.add(e.byteRange)
	}
	if all != s.bytes {
		return false // a part of the state
	}
	w.to.or(f.bits)
	w.worst = max(w.worst, f.worst+below)
	for _, e := range f.exits {
		w.visit(e.node, w.behind(e.to, base), 2)
	}
	return true
}
