package grammar

import (
	"math/rand/v2"
	"strings"
	"testing"
)

func accepts(t *testing.T, p Piece, text string) (goesOn, ends bool) {
	t.Helper()
	g, err := Compose(p)
	if err != nil {
		t.Fatal(err)
	}
	m := g.Matcher(NewVocab(nil, nil))
	goesOn = m.AcceptText([]byte(text)) == nil
	return goesOn, goesOn && m.CanEnd()
}

// Texts of few letters, so that markers are met by chance, in each other and overlapping.
func TestWithout(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	draw := func(n int) string {
		var b strings.Builder
		for range n {
			b.WriteString([]string{"a", "b", "é"}[rng.IntN(3)])
		}
		return b.String()
	}
	for range 300 {
		markers := []string{draw(1 + rng.IntN(4)), draw(1 + rng.IntN(4))}
		text := draw(rng.IntN(12))
		want := !strings.Contains(text, markers[0]) && !strings.Contains(text, markers[1])
		if _, got := accepts(t, Without(markers...), text); got != want {
			t.Fatalf("%q without %q: %v, want %v", text, markers, got, want)
		}
	}
}

func TestTextThenCall(t *testing.T) {
	schema := []byte(`{"$defs":{"n":{"type":"integer"}},"properties":{"x":{"$ref":"#/$defs/n"}}}`)
	p := InOrder(Without("<c>"), Optional(InOrder(Exactly("<c>"), Matching(schema, "/properties/x"), Control("</c>"))))
	for text, want := range map[string][2]bool{
		"": {true, true}, "a<b> <c": {true, true}, "a<<c>": {true, false}, "<c>x": {false, false}, "<c>12": {true,
			false},
		"<c>12</c>": {false, false}, "<c>12\xff</c>": {true, true}, "\xff</c>": {false, false},
		"<c>12\xff</c>x": {false, false},
	} {
		if goesOn, ends := accepts(t, p, text); [2]bool{goesOn, ends} != want {
			t.Errorf("%q: goes on %v, ends %v", text, goesOn, ends)
		}
	}
	if _, ends := accepts(t, NotBeginning("{["), " \n x{"); !ends {
		t.Error("a bracket inside a text is refused")
	}
	if goesOn, _ := accepts(t, NotBeginning("{["), " {"); goesOn {
		t.Error("a text may begin with a bracket")
	}
	for _, bad := range []Piece{Without(""), Matching([]byte(`{`), ""), Matching([]byte(`{"contains":1}`), ""),
		Matching([]byte(`{}`), "/nowhere"), Matching([]byte(`false`), "")} {
		if _, err := Compose(bad); err == nil {
			t.Error("made a grammar of what cannot be one")
		}
	}
}
