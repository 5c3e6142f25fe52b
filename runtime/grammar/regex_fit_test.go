package grammar

import (
	"math/rand/v2"
	"regexp"
	"testing"
	"unicode/utf8"

	"sandwich/runtime/grammar/internal/automaton"
	"sandwich/runtime/grammar/internal/pattern"
)

// fitting are expressions of which the length is counted in the place of one repetition, and
// others.
var fitting = []string{"^[ab]*$", "^a[ab]+$", "^(ab)*-$", "b", "^a", "-$", "^(a|b)?-[ab]{1,2}$", "^(a(b-)*)$",
	"^[ab]+-[ab]+$", "^(ab|-)*$", "^a{2,3}$", "^(a?b)*$", "^$", "^a|-$"}

// Texts are taken that an expression and lengths allow, and no others.
func TestExpressionsAndLengths(t *testing.T) {
	var all []string
	for level := []string{""}; len(level[0]) < 6; {
		all = append(all, level...)
		var longer []string
		for _, s := range level {
			longer = append(longer, s+"a", s+"b", s+"-")
		}
		level = longer
	}
	v := testVocab(300, 1)
	for _, text := range fitting {
		re := regexp.MustCompile(text)
		for _, n := range [][2]int{{0, 3}, {2, 4}, {1, -1}, {3, 3}, {0, 0}, {4, 5000}} {
			b := pattern.PatternsOf(automaton.NewBuilder(automaton.NewMeter(t.Context(), 0, 0)))
			root := b.Rule("")
			e, err := b.Pattern("#", text, n[0], n[1])
			if err != nil {
				t.Fatal(err)
			}
			b.Define(root, e)
			p, err := b.Link(root)
			m := (*Matcher)(nil)
			if err == nil {
				m = newGrammar(p, NewMemory()).Matcher(v)
			}
			for _, s := range all {
				got := false
				if m != nil {
					at := m.at
					got = m.AcceptText([]byte(`"`+s+`"`)) == nil && m.CanEnd()
					m.at = at
				}
				if want := re.MatchString(s) && len(s) >= n[0] && (n[1] < 0 || len(s) <= n[1]); got != want {
					t.Fatalf("%s of %d to %d: %q is taken: %v", text, n[0], n[1], s, got)
				}
			}
		}
	}
}

// Where an expression and lengths have too many states together, what is taken is some of what they
// allow.
func TestNarrowedExpressions(t *testing.T) {
	v := testVocab(2000, 2)
	r := rand.New(rand.NewPCG(4, 4))
	for _, text := range []string{`^([a-z0-9-]{1,10}\.){0,99}[a-z]{2,63}$`, `[a-z]{1,99}-[a-z]{1,99}`,
		`^(x[0-9]{1,40}|(y+z?){3,20})*;[^;]{0,500}$`} {
		re := regexp.MustCompile(text)
		for _, limit := range []int{900, 5000} {
			b := pattern.PatternsOf(automaton.NewBuilder(automaton.NewMeter(t.Context(), 0, 0)))
			root := b.Rule("")
			e, err := b.Pattern("#", text, 5, limit)
			if err != nil {
				t.Fatal(err)
			}
			b.Define(root, e)
			p, err := b.Link(root)
			if err != nil {
				t.Fatal(err)
			}
			g := newGrammar(p, NewMemory())
			for range 5 {
				got, cut := answer(t, g.Matcher(v), r, 700)
				if cut {
					continue
				}
				s := decode(t, got).(string)
				if n := utf8.RuneCountInString(s); n < 5 || n > limit || !re.MatchString(s) {
					t.Fatalf("%s up to %d: %d characters, %q", text, limit, n, s)
				}
			}
		}
	}
}
