package grammar

import (
	"strings"
	"testing"
)

// takes tells whether a schema allows a text, which is JSON.
func takes(t *testing.T, g *Grammar, v *Vocab, text string) bool {
	t.Helper()
	m := g.Matcher(v)
	return m.AcceptText([]byte(text)) == nil && m.CanEnd()
}

// TestExpressionsOfECMA checks syntax that ECMA-262 and RE2 interpret differently, counts above
// those of RE2, and look-ahead.
func TestExpressionsOfECMA(t *testing.T) {
	v := testVocab(300, 1)
	for _, c := range []struct {
		pattern string
		in, out []string
	}{
		{`^\\u0041cd$`, []string{"Acd"}, []string{"\u41cd", "A"}},
		{`^\\u{1F600}\\ud83d\\ude00$`, []string{"😀😀"}, []string{"😀"}},
		{`^[\\ud83d\\ude00-\\u{1F602}]{2}$`, []string{"😀😁"}, []string{"😀", "😃😃"}},
		{`^\\S+$`, []string{"ab", "é"}, []string{"a b", "a\u00a0b", "\ufeff", "\u2003"}},
		{`^[^\\s,]+$`, []string{"ab"}, []string{"a,", "\u00a0", "\u2028"}},
		{`^[\\S\\d]\\s$`, []string{"a ", "1 "}, []string{"\u00a0 ", "a\u00a0"}},
		{`^[\\s-_]+$`, []string{" -_"}, []string{"!", "."}},
		{`^[[:alpha:]]$`, []string{":]", "p]", "[]"}, []string{"b", "z"}},
		{`^[^]$`, []string{"x", "é"}, []string{"", "xx"}},
		{`^a[]?b$`, []string{"ab"}, []string{"a]b"}},
		{`^(?<year>\\d{4})(?:-)\\x41{2}$`, []string{"2026-AA"}, []string{"2026-A", "2026-4141"}},
		{`^\\p{Script=Greek}\\p{Letter}\\p{Lu}\\P{L}$`, []string{"αaA1"}, []string{"aaA1", "αaa1"}},
		{`^\\p{Alphabetic}+$`, []string{"aéαⅷ"}, []string{"1", "_"}},
		{`^a.c$`, []string{"abc"}, []string{`a\rc`, "a\u2028c"}},
		{`^x{2000}$`, []string{strings.Repeat("x", 2000)}, []string{strings.Repeat("x", 1999), strings.Repeat("x",
			2001)}},
		{`^([a-z]{1,63}\\.){2,30}$`, []string{"ab.c.", strings.Repeat("a", 63) + ".b."},
			[]string{"ab.", strings.Repeat("a", 64) + ".b."}},
		{`^(ab{1500,}c)+?$`, []string{"a" + strings.Repeat("b", 1600) + "c"}, []string{"a" + strings.Repeat("b", 1400) +
			"c"}},
		{`^(?=.*[A-Z])(?=.*\\d)(?!no)[A-Za-z\\d]{4,8}$`, []string{"aB3d", "Passw0rd"}, []string{"no3D", "abcd", "aB3"}},
		{`^(?!.*--)[a-z-]+$`, []string{"a-b"}, []string{"a--b", ""}},
		{`^(\\p{Extended_Pictographic}|\\p{Emoji_Component})+$`, []string{"😀👍🏽", "1"}, []string{"a", ""}},
		{`\\bcat\\b`, []string{"cat", "a cat!"}, []string{"cats", "concat", "_cat"}},
		{`^(?:(?!ab).)*$`, []string{"", "ba", "a"}, []string{"ab", "xaby"}},
		{`(?<!\\d)\\d{2}(?!\\d)`, []string{"12", "a12b", "1 12"}, []string{"123", "1"}},
		{`^(?!^[-+.]*$)[+-]?0*(?:\\d{0,3}|(?=[\\d.]{1,6}0*$)\\d{0,3}\\.\\d{0,2}0*$)$`,
			[]string{"1", "-12.34", "+123.40000"}, []string{"", "-", ".", "1234.1", "1.234"}},
		{`^(?=.{3,5}$)[a-z]+(-[a-z]+)?$`, []string{"abc", "a-b"}, []string{"ab", "abcdef"}},
	} {
		g := schemaOf(t, `{"type":"string","pattern":"`+c.pattern+`"}`)
		for _, s := range c.in {
			if !takes(t, g, v, `"`+s+`"`) {
				t.Errorf("%s: %q is refused", c.pattern, s)
			}
		}
		for _, s := range c.out {
			if takes(t, g, v, `"`+s+`"`) {
				t.Errorf("%s: %q is taken", c.pattern, s)
			}
		}
	}
	for _, pattern := range []string{`(?=a`, `(?<=a$)b`, `(?<=(?=a))b`, `(a)\\1`, `\\q`, `a{3,2}`, `{2}`, `a{20000000}`,
		`[a`, `(a`, `a)`, `\\u12`, `a**`, `(?<x`, `((a?){100}b?){1000}{2}`} {
		if g, err := FromSchema([]byte(`{"type":"string","pattern":"` + pattern + `"}`)); err == nil {
			t.Errorf("%s is read: %v", pattern, g != nil)
		} else if !strings.HasPrefix(err.Error(), "#/pattern: ") {
			t.Errorf("%s: %v", pattern, err)
		}
	}
	for _, p := range strings.Fields("Emoji Extended_Pictographic Emoji_Component Emoji_Modifier Emoji_Modifier_Base " +
		"Emoji_Presentation Any ASCII Assigned ID_Start XID_Continue Math Cased Hex_Digit Dash Alphabetic scx=Greek") {
		if _, err := FromSchema([]byte(`{"type":"string","pattern":"^[\\p{` + p + `}]\\P{` + p + `}?$"}`)); err != nil {
			t.Error(err)
		}
	}
	g := schemaOf(t, `{"enum":["a b","a\u00a0b","ab","`+strings.Repeat("x", 1500)+`"],"pattern":"^\\S+$|^x{1500}$"}`)
	for s, want := range map[string]bool{"a b": false, "a\u00a0b": false, "ab": true, strings.Repeat("x", 1500): true} {
		if takes(t, g, v, `"`+s+`"`) != want {
			t.Errorf("%.10q: %v", s, !want)
		}
	}
	g = schemaOf(t, `{"type":"string","maxLength":3,"not":{"pattern":"\\s"}}`)
	if takes(t, g, v, `"a`+"\u00a0"+`"`) || !takes(t, g, v, `"ab"`) {
		t.Error("what is not to match matches where one engine says so")
	}
}
