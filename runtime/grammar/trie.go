package grammar

// trie is its nodes level by level, the root first, so that the bytes of a node's children stand
// side by side.
type trie struct {
	bytes  []byte     // that lead to each node
	nodes  []trieNode // and one behind the last: the children of a node end where those of the next begin
	below  []classes  // of the characters that begin below each
	chars  []uint16   // that begin below each, of the token that has most
	tokens []int32    // in the order of their texts
	// without are classes that none of the tokens is of alone.
	without classes
}

// trieNode is what every walk looks at.
type trieNode struct {
	from, to int32 // tokens that end here
	past     int32 // the first token that ends neither here nor below
	first    int32 // its children
}

// children are the first child of a node and what is behind the last.
func (t *trie) children(node int32) (first, end int32) {
	return t.nodes[node].first, t.nodes[node+1].first
}

// maxTokenBytes is the length of the longest token that answers under a grammar may have.
const maxTokenBytes = 1024

// newTrie makes a trie of tokens that are sorted by their texts.
func newTrie(ids []int32, text [][]byte) trie {
	t := trie{tokens: ids, bytes: []byte{0}, nodes: []trieNode{{past: int32(len(ids))}}}
	for level, depth := 0, 0; level < len(t.nodes); depth++ {
		for end := len(t.nodes); level < end; level++ {
			t.grow(int32(level), depth, text)
		}
	}
	t.below, t.chars = make([]classes, len(t.nodes)), make([]uint16, len(t.nodes))
	t.nodes = append(t.nodes, trieNode{first: int32(len(t.nodes))})
	if len(ids) > 0 {
		t.note(0, nil, text)
	}
	return t
}

// grow makes the children of a node that so many bytes lead to.
func (t *trie) grow(node int32, depth int, text [][]byte) {
	n := t.nodes[node]
	i := n.from
	for i < n.past && len(text[t.tokens[i]]) == depth {
		i++
	}
	n.to, n.first = i, int32(len(t.nodes))
	for i < n.past {
		from, b := i, text[t.tokens[i]][depth]
		for i < n.past && text[t.tokens[i]][depth] == b {
			i++
		}
		t.bytes = append(t.bytes, b)
		t.nodes = append(t.nodes, trieNode{from: from, past: i})
	}
	t.nodes[node] = n
}

// noClass is that of a byte inside of a character.
const noClass = 127

// note notes at every node on the path to the tokens of a node, and of all below it, what begins
// below.
func (t *trie) note(node int32, path []int32, text [][]byte) {
	n := &t.nodes[node]
	if path = append(path, node); n.to > n.from {
		var begins [maxTokenBytes]uint8
		s := text[t.tokens[n.from]]
		for j := 0; j < len(s); {
			class, size := firstClass(s[j:])
			begins[j] = class
			for k := 1; k < size; k++ {
				begins[j+k] = noClass
			}
			j += size
		}
		var below classes
		chars := uint16(0)
		for d := len(s); d >= 0; d-- {
			if d < len(s) && begins[d] != noClass {
				below.add(begins[d])
				chars++
			}
			at := path[d]
			t.below[at], t.chars[at] = t.below[at].or(below), max(t.chars[at], chars)
		}
	}
	for c, end := t.children(node); c < end; c++ {
		t.note(c, path, text)
	}
}
