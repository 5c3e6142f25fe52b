package grammar

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"sandwich/runtime/grammar/internal/automaton"
	"sandwich/runtime/grammar/internal/pattern"
)

// namesOf returns the names of an object's members as often as they are written.
func namesOf(t *testing.T, text string) (names []string) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	if _, err := d.Token(); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	for d.More() {
		name, err := d.Token()
		var value json.RawMessage
		if err != nil || d.Decode(&value) != nil {
			t.Fatalf("%s: not an object", text)
		}
		names = append(names, name.(string))
	}
	return names
}

// TestNamesOfFreeChoice checks objects whose members are not declared: few names never repeat, and
// of others as many differ as minProperties demands.
func TestNamesOfFreeChoice(t *testing.T) {
	v := testVocab(3000, 11)
	for schema, want := range map[string]struct {
		members, distinct int // at least
		unique            bool
	}{
		`{"type":"object","patternProperties":{"^[ab]$":{"type":"integer"}},"additionalProperties":false,
			"minProperties":2}`: {2, 2, true},
		`{"type":"object","patternProperties":{"^(foo|bar)$":{"type":"integer"}},"additionalProperties":false}`: {0, 0,
			true},
		`{"type":"object","patternProperties":{"^(foo|bar)$":{"type":"integer"},"^b":{"minimum":3}},
			"additionalProperties":false,"maxProperties":2}`: {0, 0, true},
		`{"type":"object","patternProperties":{"^[a-z0-9]{2}$":{"type":"null"}},"additionalProperties":false,
			"minProperties":4,"maxProperties":6}`: {4, 4, false},
		`{"type":"object","propertyNames":{"enum":["x","y","z"]},"additionalProperties":{"type":"null"},
			"minProperties":2}`: {2, 2, true},
		`{"type":"object","propertyNames":{"pattern":"^[xy]?$"},"additionalProperties":{"type":"null"},
			"minProperties":3}`: {3, 3, true},
		`{"type":"object","patternProperties":{"^k":{"type":"null"}},"additionalProperties":false,
			"minProperties":3}`: {3, 3, false},
		`{"type":"object","patternProperties":{"^aaaa[0-9]{2}$":{"type":"null"}},"additionalProperties":false,
			"minProperties":3}`: {3, 3, false},
		`{"type":"object","properties":{"a":{"type":"null"},"b":{"type":"null"},"c":{"type":"null"}},
			"additionalProperties":{"type":"boolean"},"minProperties":7,"maxProperties":9}`: {7, 7, false},
		`{"type":"object","properties":{"a":{"type":"null"},"b":{"type":"null"}},"required":["b"],
			"patternProperties":{"^x[12]$":{"type":"null"}},"additionalProperties":false,"minProperties":3}`: {3, 3, true},
	} {
		g := schemaOf(t, schema)
		r := rand.New(rand.NewPCG(9, 9))
		for range 30 {
			text, cut := answer(t, g.Matcher(v), r, 120)
			if cut {
				t.Errorf("%s: cut: %s", schema, text)
				break
			}
			names := namesOf(t, text)
			different := map[string]bool{}
			for _, n := range names {
				different[n] = true
			}
			repeats := len(different) < len(names)
			if len(names) < want.members || len(different) < want.distinct || want.unique && repeats {
				t.Errorf("%s: %s", schema, text)
				break
			}
			if root := decode(t, schema); !(checker{root}).valid(root, decode(t, text)) {
				t.Errorf("%s: not valid: %s", schema, text)
				break
			}
		}
	}
}

// TestListed checks which texts are listed: all where they are few, none where they are endless or
// many, whatever dead ends their automaton has.
func TestListed(t *testing.T) {
	b := pattern.PatternsOf(automaton.NewBuilder(automaton.NewMeter(t.Context(), 0, 0)))
	for _, c := range []struct {
		t    pattern.Texts
		want string // of at most 8 texts
	}{
		{pattern.Texts{Want: []string{"^[ab]$"}, Most: -1}, "a b"},
		{pattern.Texts{Want: []string{"^(x|yy|)$"}, Most: -1}, " x yy"},
		{pattern.Texts{Want: []string{"^a*$"}, Most: 3}, " a aa aaa"},
		{pattern.Texts{Want: []string{"^a*$"}, Most: -1}, "no"},
		{pattern.Texts{Want: []string{"^(ab*c|d)$"}, Unwanted: []string{"c$"}, Most: -1}, "d"},
		{pattern.Texts{Want: []string{"^[a-z]$"}, Most: -1}, "no"},
		{pattern.Texts{Want: []string{"^.$"}, Most: -1}, "no"},
		{pattern.Texts{Want: []string{"^a$", "^b$"}, Most: -1}, ""},
		{pattern.Texts{Most: 1}, "no"},
		{pattern.Texts{Most: -1}, "no"},
	} {
		list, ok := b.Listed("#", c.t, 8)
		got := strings.Join(list, " ")
		if !ok {
			got = "no"
		}
		if got != c.want {
			t.Errorf("%v: %q, want %q", c.t, got, c.want)
		}
	}
}

// TestReasonsOfRefusals checks that a refusal says what is wrong with the schema, and that schemas
// with nothing wrong are taken.
func TestReasonsOfRefusals(t *testing.T) {
	chain := func(n int) string {
		var defs []string
		for i := range n {
			defs = append(defs, fmt.Sprintf(`"d%d":{"$ref":"#/$defs/d%d"}`, i, i+1))
		}
		return fmt.Sprintf(`{"allOf":[{"$ref":"#/$defs/d0"}],"$defs":{%s,"d%d":{"type":"null"}}}`, strings.Join(defs,
			","), n)
	}
	for schema, want := range map[string]string{
		strings.Repeat(`{"allOf":[`, 100) + `{"type":"null"}` + strings.Repeat(`]}`, 100): "",
		chain(150): "",
		chain(300): "nested more than 256 levels deep",
		`{"$ref":"#/$defs/a","$defs":{"a":{"allOf":[{"$ref":"#/$defs/a"}]}}}`: "refers to itself without end",
		`{"$ref":"#/$defs/a","$defs":{"a":{"properties":{"x":{"allOf":[{"$ref":"#/$defs/a"},{"$ref":"#/$defs/b"}]}}},
			"b":{"properties":{"x":{"allOf":[{"$ref":"#/$defs/b"},{"$ref":"#/$defs/a"},
			{"properties":{"y":{"allOf":[{"$ref":"#/$defs/a"}]}}}]}}}}}`: "",
		`{"type":"object","patternProperties":{"^[ab]$":{}},"additionalProperties":false,"minProperties":3}`: "" +
			"#/minProperties: no value satisfies the schema: an object has at most 2 members",
		`{"type":"object","patternProperties":{"^[ab]{7}$":{}},"additionalProperties":false,"minProperties":150}`: "" +
			"at most 6 additional members with distinct names are supported",
	} {
		_, err := FromSchema([]byte(schema))
		var e *automaton.Error
		switch {
		case want == "" && err != nil:
			t.Errorf("%.100s: %v", schema, err)
		case want != "" && (!errors.As(err, &e) || !strings.Contains(err.Error(), want)):
			t.Errorf("%.100s: %v, want %q", schema, err, want)
		}
	}
}
