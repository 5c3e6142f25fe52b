package grammar

import "sandwich/runtime/grammar/internal/automaton"

// trie stores its nodes level by level, the root first, so that the bytes of a node's children are
// adjacent.
type trie struct {
	bytes  []byte              // the byte that leads to each node
	nodes  []trieNode          // with a sentinel at the end: the children of a node end where those of the next begin
	below  []automaton.Classes // by node: classes of the characters that start below it
	chars  []uint16            // by node: most characters of a token that start below it
	tokens []int32             // sorted by their texts
	// without are classes such that no token consists of them only.
	without automaton.Classes
}

// trieNode is the part of a node that every walk uses.
type trieNode struct {
	from, to int32 // range in tokens of those that end here
	past     int32 // end of the range of those that end here or below
	first    int32 // its first child
}

// children returns the range of a node's children.
func (t *trie) children(node int32) (first, end int32) {
	return t.nodes[node].first, t.nodes[node+1].first
}

// maxTokenBytes is the largest length of a token in an answer under a grammar.
const maxTokenBytes = 1024

// newTrie returns the trie of tokens that are sorted by their texts.
func newTrie(ids []int32, text [][]byte) trie {
	t := trie{tokens: ids, bytes: []byte{0}, nodes: []trieNode{{past: int32(len(ids))}}}
	for level, depth := 0, 0; level < len(t.nodes); depth++ {
		for end := len(t.nodes); level < end; level++ {
			t.grow(int32(level), depth, text)
		}
	}
	t.below, t.chars = make([]automaton.Classes, len(t.nodes)), make([]uint16, len(t.nodes))
	t.nodes = append(t.nodes, trieNode{first: int32(len(t.nodes))})
	if len(ids) > 0 {
		t.note(0, nil, text)
	}
	return t
}

// grow creates the children of a node at the given depth.
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

// note sets below and chars for the nodes on the paths to the tokens at and below a node.
func (t *trie) note(node int32, path []int32, text [][]byte) {
	n := &t.nodes[node]
	if path = append(path, node); n.to > n.from {
		var begins [maxTokenBytes]uint8
		s := text[t.tokens[n.from]]
		for j := 0; j < len(s); {
			class, size := automaton.FirstClass(s[j:])
			begins[j] = class
			for k := 1; k < size; k++ {
				begins[j+k] = automaton.NoClass
			}
			j += size
		}
		var below automaton.Classes
		chars := uint16(0)
		for d := len(s); d >= 0; d-- {
			if d < len(s) && begins[d] != automaton.NoClass {
				below.Add(begins[d])
				chars++
			}
			at := path[d]
			t.below[at], t.chars[at] = t.below[at].Or(below), max(t.chars[at], chars)
		}
	}
	for c, end := t.children(node); c < end; c++ {
		t.note(c, path, text)
	}
}

// charTrie is a trie by characters of the tokens of a vocabulary, as far as their text consists of
// characters that JSON strings contain unescaped. The parts of the vocabulary by kinds of
// characters are made from it.
type charTrie struct {
	up    []int32 // parent of each node; the root is its own parent
	char  []int32 // index in runes of the character that leads to each node
	runes []rune
	ids   []int32 // tokens that start with such a character
	at    []int32 // by index in ids: the node after the token's characters
	tail  []int32 // by index in ids: index in tails of the bytes after the characters; 0 for none
	tails [][]byte
}

// newCharTrie returns the trie of tokens that are sorted by their texts.
func newCharTrie(ids []int32, text [][]byte) *charTrie {
	t := &charTrie{up: []int32{0}, char: []int32{0}, tails: [][]byte{nil}}
	numbers, tails := map[rune]int32{}, map[string]int32{}
	var before []rune
	path := []int32{0} // the nodes of the previous token
	for _, id := range ids {
		n, tail := automaton.JSONClasses.First(text[id])
		if n == 0 {
			continue
		}
		chars := []rune(string(text[id][:len(text[id])-len(tail)]))
		same := 0
		for same < min(len(chars), len(before)) && chars[same] == before[same] {
			same++
		}
		path = path[:same+1]
		for _, r := range chars[same:] {
			number, met := numbers[r]
			if !met {
				number = int32(len(t.runes))
				numbers[r], t.runes = number, append(t.runes, r)
			}
			t.up, t.char = append(t.up, path[len(path)-1]), append(t.char, number)
			path = append(path, int32(len(t.up)-1))
		}
		before = chars
		behind := int32(0)
		if len(tail) > 0 {
			number, met := tails[string(tail)]
			if !met {
				number = int32(len(t.tails))
				tails[string(tail)], t.tails = number, append(t.tails, tail)
			}
			behind = number
		}
		t.ids, t.at, t.tail = append(t.ids, id), append(t.at, path[len(path)-1]), append(t.tail, behind)
	}
	return t
}
