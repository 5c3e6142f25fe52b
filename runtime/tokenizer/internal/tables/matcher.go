package tables

import "strings"

// Matcher finds special tokens spelled out in a text: the left-most, and among those that start at
// the same place the longest. It is a trie; node 0 is the root, and the children of a node form a
// list.
type Matcher struct {
	nodes  []matchNode
	starts [256]bool // whether a token starts with the byte
	only   int       // the byte that all tokens start with, or -1
}

type matchNode struct {
	token   int32 // id of the token that ends here, or -1
	child   int32 // first child, 0 for none
	sibling int32 // next child of the same parent, 0 for none
	b       byte
	free    bool // the token may extend past the end given to find
}

// NewMatcher returns a Matcher without tokens.
func NewMatcher() *Matcher {
	return &Matcher{nodes: []matchNode{{token: -1}}, only: -1}
}

// Add adds a token; if the text has one already, the first stays. A free token may extend past the
// end that is given to find.
func (m *Matcher) Add(text string, token int32, free bool) {
	if text == "" {
		return
	}
	switch first := int(text[0]); {
	case len(m.nodes) == 1:
		m.only = first
	case m.only != first:
		m.only = -1
	}
	m.starts[text[0]] = true
	at := int32(0)
	for i := range len(text) {
		next := m.child(at, text[i])
		if next == 0 {
			m.nodes = append(m.nodes, matchNode{token: -1, sibling: m.nodes[at].child, b: text[i]})
			next = int32(len(m.nodes) - 1)
			m.nodes[at].child = next
		}
		at = next
	}
	if m.nodes[at].token < 0 {
		m.nodes[at].token, m.nodes[at].free = token, free
	}
}

func (m *Matcher) child(at int32, b byte) int32 {
	for c := m.nodes[at].child; c != 0; c = m.nodes[c].sibling {
		if m.nodes[c].b == b {
			return c
		}
	}
	return 0
}

// Each calls f for each token at or below a node. prefix is the spelling of the node.
func (m *Matcher) Each(node int32, prefix []byte, f func(text string, token int32)) {
	if token := m.nodes[node].token; token >= 0 {
		f(string(prefix), token)
	}
	for c := m.nodes[node].child; c != 0; c = m.nodes[c].sibling {
		m.Each(c, append(prefix, m.nodes[c].b), f)
	}
}

// Has reports whether a token is spelled text.
func (m *Matcher) Has(text string) bool {
	n, _ := m.Prefix(text, len(text))
	return text != "" && n == len(text)
}

// Find returns the first special token that starts in the first end bytes of text: its position,
// its length in bytes and its id. Tokens that are not free must also end there. If there is none it
// returns (end, 0, -1).
func (m *Matcher) Find(text string, end int) (at, n int, token int32) {
	if len(m.nodes) == 1 {
		return end, 0, -1
	}
	for ; at < end; at++ {
		if m.only >= 0 {
			skip := strings.IndexByte(text[at:end], byte(m.only))
			if skip < 0 {
				break
			}
			at += skip
		} else if !m.starts[text[at]] {
			continue
		}
		if n, token := m.Prefix(text[at:], end-at); n > 0 {
			return at, n, token
		}
	}
	return end, 0, -1
}

// Prefix returns the length and the id of the longest special token at the start of text, or (0,
// -1). Tokens that are not free must end in the first end bytes.
func (m *Matcher) Prefix(text string, end int) (n int, token int32) {
	token = -1
	at := int32(0)
	for i := range len(text) {
		if at = m.child(at, text[i]); at == 0 {
			break
		}
		if node := &m.nodes[at]; node.token >= 0 && (i < end || node.free) {
			n, token = i+1, node.token
		}
	}
	return n, token
}
