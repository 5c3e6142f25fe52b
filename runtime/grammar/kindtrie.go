package grammar

import "sandwich/runtime/grammar/internal/automaton"

// kindTrie is a vocabulary by kinds of characters. Tokens whose characters have the same sequence
// of kinds have the same effect on every state of a region, so they share one node.
type kindTrie struct {
	kinds *automaton.Kinds
	size  int
	nodes []kindNode // in preorder, the root first, with a sentinel at the end
	// tokens are the tokens of characters only, in the order of nodes. tailed are the tokens that
	// continue with other bytes, and tail is the index of these bytes in charTrie.tails.
	tokens, tailed, tail []int32
	all                  []uint64 // tokens as bits
	chars                *charTrie
	use                  partUse
}

// kindNode is a node of a kindTrie. The tokens that end at a node are those from its index to the
// index of the next node; those at or below it end at the index of the node next.
type kindNode struct {
	next  int32  // the first node after its subtree
	from  int32  // index of its first token in tokens
	tails int32  // index of its first token in tailed
	below uint64 // the kinds in its subtree, without its own
	depth uint16
	chars uint8 // characters of the longest token below it, at most farChars
	kind  uint8 // the kind that leads to it
}

// farChars represents all lengths of farChars and more.
const farChars = 255

// newKindTrie returns the trie of a vocabulary of size tokens for the given kinds.
func newKindTrie(k *automaton.Kinds, c *charTrie, size int) *kindTrie {
	t := &kindTrie{kinds: k, size: size, chars: c}
	node := t.grow(c)
	order := t.order(node)
	t.fill(order)
	return t
}

// grow creates the nodes in the order of the characters' trie. The result maps each node of that
// trie to a new one, or to -1 if no state reads its characters.
func (t *kindTrie) grow(c *charTrie) (g grown) {
	kind := make([]uint8, len(c.runes))
	for i, r := range c.runes {
		kind[i] = t.kinds.Of(r)
	}
	shift := 1
	for 1<<shift < len(c.up) {
		shift++
	}
	g = grown{of: make([]int32, len(c.up)), up: []int32{0}, kind: []uint8{0}}
	slots := make([]int32, 1<<shift) // hash table of node numbers plus 1
	for i := 1; i < len(c.up); i++ {
		above, k := g.of[c.up[i]], kind[c.char[i]]
		if above < 0 || k == automaton.NoKind {
			g.of[i] = -1
			continue
		}
		h := automaton.Mixed(uint64(above)<<8|uint64(k)) >> (64 - shift)
		for ; ; h = (h + 1) & (1<<shift - 1) {
			n := slots[h] - 1
			if n < 0 {
				n = int32(len(g.up))
				slots[h], g.up, g.kind = n+1, append(g.up, above), append(g.kind, k)
			} else if g.up[n] != above || g.kind[n] != k {
				continue
			}
			g.of[i] = n
			break
		}
	}
	return g
}

// grown are nodes in the order in which they were created, and the map of the characters' trie to
// them.
type grown struct {
	of   []int32
	up   []int32
	kind []uint8
}

// order arranges the nodes in preorder and returns the map of the characters' nodes to them.
func (t *kindTrie) order(g grown) []int32 {
	n := len(g.up)
	size := make([]int32, n) // size of each subtree
	for i := n - 1; i > 0; i-- {
		size[i]++
		size[g.up[i]] += size[i]
	}
	size[0]++
	place, free := make([]int32, n), make([]int32, n) // free: position of the next child
	t.nodes = make([]kindNode, n+1)
	free[0] = 1
	t.nodes[0].next = int32(n)
	for i := 1; i < n; i++ {
		at := free[g.up[i]]
		free[g.up[i]] += size[i]
		place[i], free[i] = at, at+1
		t.nodes[at] = kindNode{next: at + size[i], depth: t.nodes[place[g.up[i]]].depth + 1, kind: g.kind[i]}
	}
	for i, x := range g.of {
		if x >= 0 {
			g.of[i] = place[x]
		}
	}
	return g.of
}

// fill assigns the tokens to their nodes.
func (t *kindTrie) fill(node []int32) {
	c := t.chars
	plain, tailed := make([]int32, len(t.nodes)), make([]int32, len(t.nodes))
	count := func(i int) []int32 {
		if c.tail[i] > 0 {
			return tailed
		}
		return plain
	}
	for i, at := range c.at {
		if node[at] >= 0 {
			count(i)[node[at]+1]++
		}
	}
	last := len(t.nodes) - 1
	for i := range t.nodes {
		t.nodes[i].from, t.nodes[i].tails = plain[i], tailed[i]
		if i < last {
			plain[i+1] += plain[i]
			tailed[i+1] += tailed[i]
		}
	}
	for i := last - 1; i >= 0; i-- {
		n := &t.nodes[i]
		for c := int32(i) + 1; c < n.next; c = t.nodes[c].next {
			n.below |= t.nodes[c].below | 1<<t.nodes[c].kind
			n.chars = max(n.chars, min(t.nodes[c].chars, farChars-1)+1)
		}
	}
	t.tokens, t.tailed = make([]int32, plain[last]), make([]int32, tailed[last])
	t.tail, t.all = make([]int32, len(t.tailed)), make([]uint64, words64(t.size))
	for i, at := range c.at {
		x := node[at]
		if x < 0 {
			continue
		}
		to := &count(i)[x]
		if c.tail[i] > 0 {
			t.tailed[*to], t.tail[*to] = c.ids[i], c.tail[i]
		} else {
			t.tokens[*to] = c.ids[i]
			t.all[c.ids[i]/64] |= 1 << (c.ids[i] % 64)
		}
		*to++
	}
}

// memory returns about how many bytes the trie takes.
func (t *kindTrie) memory() int64 {
	return int64(24*len(t.nodes) + 4*len(t.tokens) + 8*len(t.tailed) + 8*len(t.all))
}
