package grammar

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"sandwich/runtime/grammar/internal/automaton"
)

// hardSchemas returns schemas that are expensive or hard to read. Each is accepted, or refused with
// a path, within the budget.
func hardSchemas() map[string]string {
	many := func(n int, each string) string {
		out := make([]string, n)
		for i := range out {
			out[i] = strings.ReplaceAll(each, "#", fmt.Sprint(i))
		}
		return strings.Join(out, ",")
	}
	wide := `{"type":"object","properties":{` + many(20, `"p#":{"type":"integer","multipleOf":4093,"maximum":1#}`) +
		`}}`
	return map[string]string{
		"enum of 10^4":         `{"enum":[` + many(10_000, `"v#"`) + `]}`,
		"10^5 alternatives":    `{"anyOf":[` + many(100_000, `{"type":"object","properties":{"a#":{}}}`) + `]}`,
		"10^5 equal ones":      `{"anyOf":[` + many(100_000, `{"type":"string","maxLength":3}`) + `]}`,
		"exploding expression": `{"type":"string","pattern":"^(a|a)*b$"}`,
		"nested stars":         `{"type":"string","pattern":"^((a*)*)*b$"}`,
		"nested counts":        `{"type":"string","pattern":"((a{1,100}){1,100})"}`,
		"counts and lengths":   `{"type":"string","pattern":"(a?){400}a{400}","minLength":700,"maxLength":900}`,
		"memory of 300":        `{"type":"string","pattern":"(a|b| ).{300}$"}`,
		"long strings":         `{"type":"string","minLength":16000000}`,
		"multiples":            wide,
		"cycle":                `{"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}}}`,
		"cycle of allOf":       `{"$ref":"#/$defs/a","$defs":{"a":{"allOf":[{"$ref":"#/$defs/a"},{"type":"object"}]}}}`,
		"allOf that comes " +
			"back": `{"$ref":"#/$defs/a","$defs":{"c":{"type":"object"},"a":{"type":"object","properties":{"x":{
			"allOf":[{"$ref":"#/$defs/a"},{"$ref":"#/$defs/c"}]}},"required":["x"]}}}`,
		"allOf that comes back and ends": `{"$ref":"#/$defs/a","$defs":{"c":{"type":"object"},"a":{"type":"object",
			"properties":{"x":{"allOf":[{"$ref":"#/$defs/a"},{"$ref":"#/$defs/c"}]}}}}}`,
		"endless " +
			"object": `{"$ref":"#/$defs/a","$defs":{"a":{"properties":{"x":{"$ref":"#/$defs/a"}},"type":"object","required":["x"]}}}`,
		"deep":     strings.Repeat(`{"type":"array","items":`, 120) + "true" + strings.Repeat("}", 120),
		"too deep": strings.Repeat(`{"items":`, 400_000),
		"too long": `{"properties":{` + many(100_000, `"p#":{"type":"object","properties":{"a":{}}}`) +
			`}}`,
		"two explosions": `{"allOf":[{"type":"string","pattern":"(a|b)*a(a|b){14}c"},{"pattern":"b(a|b){15}c"}]}`,
		"products of anyOf": `{"allOf":[` + many(12,
			`{"anyOf":[{"title":"#"},{"minimum":1},{"maxLength":2},{"maxItems":#}]}`) + `]}`,
	}
}

func TestHardSchemas(t *testing.T) {
	v := testVocab(3000, 8)
	r := rand.New(rand.NewPCG(2, 2))
	for name, schema := range hardSchemas() {
		g, err := FromSchema([]byte(schema))
		if err != nil {
			var e *automaton.Error
			if !errors.As(err, &e) || e.Path == "" && name != "too deep" || strings.Contains(e.Path, "!") {
				t.Errorf("%s: refused without a path: %v", name, err)
			}
			t.Logf("%s: %.120s", name, err)
			continue
		}
		m := g.Matcher(v)
		answer(t, m, r, 60)
		t.Logf("%s: served, %d MB of program, %d MB of states, work %d", name, g.program.Bytes>>20, m.m.bytes>>20,
			m.m.work)
		if m.m.bytes > stateBytes+(8<<20) {
			t.Errorf("%s: states take %d bytes", name, m.m.bytes)
		}
	}
}

// Ambiguous grammars, whose stacks would multiply with every byte.
func TestAmbiguousGrammars(t *testing.T) {
	v := testVocab(3000, 8)
	r := rand.New(rand.NewPCG(2, 3))
	for _, text := range []string{
		`root ::= ((("a"?){0,64}){0,64}){0,64} "b"`, `root ::= (("a"{1,1000}){1,1000}){1,1000} "b"`,
		"root ::= x x x x x x x x \"b\"\nx ::= (\"a\" | y)*\ny ::= \"a\" x \"a\"",
	} {
		g, err := fromGBNF(text, nil)
		if err != nil {
			t.Logf("%s: %v", text, err)
			continue
		}
		m := g.Matcher(v)
		answer(t, m, r, 60)
		t.Logf("%s: %d MB of states, work %d", text, m.m.bytes>>20, m.m.work)
	}
}

// consistent draws some tokens: each that a mask has is taken, and one outside of it only where the
// work of a mask was bounded.
func consistent(t *testing.T, g *Grammar, v *Vocab, seed uint64) {
	m := g.Matcher(v)
	r := rand.New(rand.NewPCG(seed, 5))
	for left := 24; left > 0 && !m.MustEnd(); left-- {
		mask := m.Mask(1 << 20)
		bounded := m.bounded()
		at, pick, met := m.at, int32(-1), 0
		for id := range int32(v.size) {
			err := m.Accept(id)
			m.at = at
			if mask.Has(id) != (err == nil) && (mask.Has(id) || !bounded) {
				t.Fatalf("token %q: mask %v, accept %v", v.text[id], mask.Has(id), err)
			}
			if met++; mask.Has(id) && !v.Ends(id) && (pick < 0 || r.IntN(met) < 3) {
				pick = id
			}
		}
		if pick < 0 {
			return
		}
		if err := m.Accept(pick); err != nil {
			t.Fatal(err)
		}
	}
}

func FuzzFromSchema(f *testing.F) {
	v := testVocab(400, 9)
	for seed := range uint64(20) {
		f.Add(fuzzSeed(seed))
	}
	f.Fuzz(func(t *testing.T, schema []byte) {
		if len(schema) > 4096 {
			return
		}
		if g, err := FromSchema(schema); err == nil {
			consistent(t, g, v, uint64(len(schema)))
		}
	})
}

func FuzzFromGBNF(f *testing.F) {
	v := testVocab(400, 9)
	for _, s := range []string{"root ::= \"a\" b*\nb ::= [0-9é]{2,} | .",
		"root ::= (\"x\" | y)+ \"\\n\"\ny ::= \"(\" root \")\"",
		"root ::= [^a-z] \"\\u00e9\"? # c", "root ::= ((\"a\"?){0,9}){0,9}"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 4096 {
			return
		}
		if g, err := fromGBNF(text, v); err == nil {
			consistent(t, g, v, uint64(len(text)))
		}
	})
}
