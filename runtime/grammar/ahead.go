package grammar

import "sandwich/runtime/grammar/internal/automaton"

// heavyWays is the number of edges from which a words state is followed in advance, and maxAhead
// the number of trie nodes visited for all such states.
const (
	heavyWays = 8
	maxAhead  = 1 << 21
)

// maxExits is the largest number of exits that is cached. With more exits there is little to gain.
const maxExits = 1 << 12

// ahead computes followed for all words states of the program.
func (g *Grammar) ahead(v *Vocab) {
	s := &g.masks
	s.mu.Lock()
	defer s.mu.Unlock()
	left := maxAhead
	for _, top := range g.program.Heavy {
		if t := &g.program.Tops[top]; !t.Simple || t.Count < heavyWays {
			continue // merged with other states, or pruned
		}
		for _, of := range []*trie{&v.json.plain, &v.json.rest, &v.json.blanks} {
			key := followedKey{of, top}
			size := int64(8*words64(v.size) + 8*maxExits)
			if _, met := s.followed[key]; met || len(of.tokens) == 0 || !s.room(size) {
				continue
			}
			f := &followed{bits: make([]uint64, words64(v.size))}
			f.follow(g.program, of, 0, top, &left)
			if len(f.exits) > maxExits || left < 0 {
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

// follow adds the tokens below a node. It stops after *left nodes.
func (f *followed) follow(p *automaton.Program, t *trie, node, top int32, left *int) {
	for c, to := range inStep(p, t, node, top) {
		if *left--; *left < 0 || len(f.exits) > maxExits {
			return
		}
		if !p.Tops[to].Simple {
			f.exits = append(f.exits, exit{c, to})
			continue
		}
		n := &t.nodes[c]
		if n.to > n.from {
			f.worst = max(f.worst, p.Tops[to].Dist)
			for _, id := range t.tokens[n.from:n.to] {
				f.bits[id/64] |= 1 << (id % 64)
			}
		}
		if first, end := t.children(c); first < end {
			f.follow(p, t, c, to, left)
		}
	}
}

// takeAhead adds the cached tokens of the trie for a state. It returns false if they are not cached
// or if some of them lead too far from the end.
func (w *walker) takeAhead(s *state) bool {
	if len(s.items) != 1 || s.loop != nil {
		return false
	}
	top, base := s.items[0].state, s.items[0].parent
	t := &w.m.p.Tops[top]
	if !t.Simple || t.Count < heavyWays {
		return false
	}
	f := w.of.masks.found(followedKey{w.trie, top})
	below := 0.0
	if base != nil {
		below = base.cost
	}
	if f == nil || f.worst+below > w.max {
		return false
	}
	var all automaton.ByteSet
	for _, e := range w.m.p.Edges[t.First : t.First+int32(t.Count)] {
		all.Add(e.ByteRange)
	}
	if all != s.bytes {
		return false // the cached tokens cover only part of the state
	}
	w.to.or(f.bits)
	w.worst = max(w.worst, f.worst+below)
	for _, e := range f.exits {
		w.visit(e.node, w.behind(e.to, base), 2)
	}
	return true
}
