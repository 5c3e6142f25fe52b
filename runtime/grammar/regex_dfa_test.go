package grammar

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"
)

// lookMaker generates random expressions with look-around, and matches them by backtracking. It
// shares no code with the package.
type lookMaker struct{ *rand.Rand }

// node is one part of an expression, of some others or of a set of letters.
type lookNode struct {
	kind string // "set", "seq", "alt", "star", "opt", "^", "$", "?=", "?!", "?<=", "?<!", `\b`, `\B`
	set  string
	of   []*lookNode
}

func (m lookMaker) node(depth int, behind bool) *lookNode {
	if depth == 0 {
		return &lookNode{kind: "set", set: []string{"a", "b", "ab", "-", "a-"}[m.IntN(5)]}
	}
	sub := func() *lookNode { return m.node(depth-1, behind) }
	switch n := m.IntN(14); {
	case n < 4:
		return &lookNode{kind: "seq", of: []*lookNode{sub(), sub()}}
	case n < 6:
		return &lookNode{kind: "alt", of: []*lookNode{sub(), sub()}}
	case n == 6:
		return &lookNode{kind: "star", of: []*lookNode{sub()}}
	case n == 7:
		return &lookNode{kind: "opt", of: []*lookNode{sub()}}
	case n == 8:
		return &lookNode{kind: "^"}
	case n == 9 && !behind:
		return &lookNode{kind: []string{"$", `\b`, `\B`}[m.IntN(3)]}
	case n == 10:
		return &lookNode{kind: []string{"?<=", "?<!"}[m.IntN(2)], of: []*lookNode{m.node(depth-1, true)}}
	case n < 13 && !behind:
		return &lookNode{kind: []string{"?=", "?!"}[m.IntN(2)], of: []*lookNode{sub()}}
	}
	return m.node(0, behind)
}

func (n *lookNode) text() string {
	switch n.kind {
	case "set":
		return "[" + n.set + "]"
	case "seq":
		return n.of[0].text() + n.of[1].text()
	case "alt":
		return "(?:" + n.of[0].text() + "|" + n.of[1].text() + ")"
	case "star", "opt":
		return "(?:" + n.of[0].text() + ")" + map[string]string{"star": "*", "opt": "?"}[n.kind]
	case "^", "$", `\b`, `\B`:
		return n.kind
	}
	return "(" + n.kind + n.of[0].text() + ")"
}

// ends are the places at which a match that begins at a place may end.
func (n *lookNode) ends(s string, at int) map[int]bool {
	out := map[int]bool{}
	here := func(ok bool) map[int]bool {
		if ok {
			out[at] = true
		}
		return out
	}
	word := func(i int) bool { return i >= 0 && i < len(s) && s[i] != '-' }
	switch n.kind {
	case "set":
		if at < len(s) && strings.IndexByte(n.set, s[at]) >= 0 {
			out[at+1] = true
		}
	case "seq":
		for mid := range n.of[0].ends(s, at) {
			for end := range n.of[1].ends(s, mid) {
				out[end] = true
			}
		}
	case "alt":
		for _, x := range n.of {
			for end := range x.ends(s, at) {
				out[end] = true
			}
		}
	case "opt":
		out = n.of[0].ends(s, at)
		out[at] = true
	case "star":
		todo := []int{at}
		for out[at] = true; len(todo) > 0; todo = todo[1:] {
			for end := range n.of[0].ends(s, todo[0]) {
				if !out[end] {
					out[end] = true
					todo = append(todo, end)
				}
			}
		}
	case "^":
		return here(at == 0)
	case "$":
		return here(at == len(s))
	case `\b`, `\B`:
		return here(word(at-1) != word(at) == (n.kind == `\b`))
	case "?=", "?!":
		return here(len(n.of[0].ends(s, at)) > 0 == (n.kind == "?="))
	default:
		behind := false
		for from := range at + 1 {
			behind = behind || n.of[0].ends(s, from)[at]
		}
		return here(behind == (n.kind == "?<="))
	}
	return out
}

// TestLookAround checks random expressions with look-around: a text is accepted if and only if the
// backtracking matcher accepts it, also as a constant.
func TestLookAround(t *testing.T) {
	v := testVocab(300, 1)
	var texts []string
	for n, last := 0, []string{""}; n < 5; n++ {
		texts = append(texts, last...)
		var next []string
		for _, s := range last {
			next = append(next, s+"a", s+"b", s+"-")
		}
		last = next
	}
	read := 0
	for seed := range uint64(400) {
		m := lookMaker{rand.New(rand.NewPCG(seed, 71))}
		n := &lookNode{kind: "seq", of: []*lookNode{m.node(3, false), m.node(3, false)}}
		never := m.IntN(4) == 0
		schema := object{"type": "string", "pattern": n.text()}
		if never {
			schema = object{"type": "string", "not": object{"pattern": n.text()}}
		}
		text, err := json.Marshal(schema)
		if err != nil {
			t.Fatal(err)
		}
		g, err := FromSchema(text)
		if err != nil && !strings.Contains(err.Error(), "no value satisfies") {
			t.Logf("%s: %v", text, err)
			continue
		}
		read++
		schema["enum"] = texts
		if text, err = json.Marshal(schema); err != nil {
			t.Fatal(err)
		}
		listed, _ := FromSchema(text)
		for _, s := range texts {
			want := false
			for at := range len(s) + 1 {
				want = want || len(n.ends(s, at)) > 0
			}
			if got := g != nil && takes(t, g, v, `"`+s+`"`); got != (want != never) {
				t.Fatalf("%s: %q is taken: %v", n.text(), s, got)
			}
			if got := listed != nil && takes(t, listed, v, `"`+s+`"`); got != (want != never) {
				t.Fatalf("%s: the constant %q is taken: %v", n.text(), s, got)
			}
		}
	}
	if t.Logf("%d of 400 read", read); read < 380 {
		t.Errorf("only %d of 400 expressions were read", read)
	}
}
