package tables

// Trie finds the tokens that a text starts with. All edges are in one hash table, (node, byte) ->
// node, so a step takes one look-up regardless of the number of children. Node 0 is the root.
type Trie struct {
	edges  []edge // open addressing, a power of two
	used   int
	Tokens []int32 // by node: the token that ends at the node, or -1
}

type edge struct {
	key  uint64 // node<<8 | byte, plus 1; 0 is free
	node int32
}

// NewTrie returns an empty trie with space for tokens of the given total size in bytes.
func NewTrie(bytes int) *Trie {
	size := 1024
	for size < 2*min(bytes, 1<<24) {
		size *= 2
	}
	return &Trie{edges: make([]edge, size), Tokens: []int32{-1}}
}

// Add adds a token. If the text has one already, the first stays. Empty tokens are ignored.
func (t *Trie) Add(text []byte, token int32) {
	at := int32(0)
	for _, b := range text {
		slot := t.slot(at, b)
		if t.edges[slot].key == 0 {
			if 2*t.used >= len(t.edges) {
				t.grow()
				slot = t.slot(at, b)
			}
			t.used++
			t.edges[slot] = edge{key(at, b), int32(len(t.Tokens))}
			t.Tokens = append(t.Tokens, -1)
		}
		at = t.edges[slot].node
	}
	if at > 0 && t.Tokens[at] < 0 {
		t.Tokens[at] = token
	}
}

func key(node int32, b byte) uint64 { return (uint64(node)<<8 | uint64(b)) + 1 }

// slot returns the position of an edge, or of the free slot where it would be stored.
func (t *Trie) slot(node int32, b byte) int {
	k := key(node, b)
	mask := uint64(len(t.edges) - 1)
	for at := k * 0x9e3779b97f4a7c15 >> 32 & mask; ; at = (at + 1) & mask {
		if e := &t.edges[at]; e.key == k || e.key == 0 {
			return int(at)
		}
	}
}

func (t *Trie) grow() {
	old := t.edges
	t.edges = make([]edge, 2*len(old))
	for _, e := range old {
		if e.key != 0 {
			k := e.key - 1
			t.edges[t.slot(int32(k>>8), byte(k))] = e
		}
	}
}

// Step follows the edge labeled b from a node. ok is false if there is none.
func (t *Trie) Step(node int32, b byte) (next int32, ok bool) {
	e := &t.edges[t.slot(node, b)]
	return e.node, e.key != 0
}

// Longest returns the length and the id of the longest token that text starts with, or (0, -1).
func (t *Trie) Longest(text []byte) (n int, token int32) {
	token = -1
	at := int32(0)
	for i, b := range text {
		var ok bool
		if at, ok = t.Step(at, b); !ok {
			break
		}
		if id := t.Tokens[at]; id >= 0 {
			n, token = i+1, id
		}
	}
	return n, token
}
