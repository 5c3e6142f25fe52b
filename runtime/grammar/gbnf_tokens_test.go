package grammar

import (
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// markedVocab is testVocab with three control tokens, of which the first ends an answer, and one of
// text that looks like them.
func markedVocab() *Vocab {
	v := testVocab(1000, 3)
	text := append(v.text[:len(v.text):len(v.text)], []byte(ControlMark+"<|end|>"), []byte(ControlMark+"<think>"),
		[]byte(ControlMark+"</think>"), []byte("<note>"))
	return NewVocab(text, []int32{0, 1, int32(len(v.text))})
}

// TestTokensOfGBNF checks that token rules match the named tokens, that letters do not match a
// control token, and that unsupported rules are refused with their line.
func TestTokensOfGBNF(t *testing.T) {
	v := markedVocab()
	r := rand.New(rand.NewPCG(5, 6))
	for text, want := range map[string]string{
		"root ::= <think> inside </think> \"yes\"\ninside ::= !</think>*": "^\xff<think>(\xff<think>|[^\xff])*" +
			"\xff</think>yes$",
		"root ::= <think>{2} !<think>": "^(\xff<think>){2}(\xff</think>|[^\xff]{1,4})$",
		"root ::= !<note>+ \"!\"":      "^[^\xff]+!$",
		"root ::= <[" + strconv.Itoa(v.size-1) + "]> | <[300]>": "^(<note>|" +
			regexp.QuoteMeta(string(v.text[300])) + ")$",
	} {
		g, err := fromGBNF(text, v)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		re := regexp.MustCompile("(?s)" + latin(want))
		for range 60 {
			m := g.Matcher(v)
			got, cut := answer(t, m, r, 40)
			if cut || !re.MatchString(latin(got)) || strings.Contains(text, "!<note>") && strings.Contains(got,
				"<note>") {
				t.Fatalf("%s: %q (cut %v)", text, got, cut)
			}
		}
		consistent(t, g, v, 3)
	}
	for text, want := range map[string]string{
		"root ::= <nosuch>": "line 1: ", "root ::=\n<think": "line 2: ", "root ::= <[99999999]>": "line 1: ",
		"root ::= <[5>": "line 1: ", "root ::= <|end|>": "ends the answer",
		"root ::= !\"a\"":  "expected a token after !",
		"root ::= !<note>": "needs * or +", "root ::= <[-1]>": "line 1: ", "root ::= <[0]>": "ends the answer",
		"root ::= (!<note>)*": "needs * or +",
	} {
		if _, err := fromGBNF(text, v); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
	if _, err := fromGBNF("root ::= <think>", nil); err == nil {
		t.Error("a token is taken without a vocabulary")
	}
}

// latin returns text of single bytes, so that expressions can contain a byte that is not a
// character.
func latin(s string) string {
	var out []rune
	for i := range len(s) {
		out = append(out, rune(s[i]))
	}
	return string(out)
}
