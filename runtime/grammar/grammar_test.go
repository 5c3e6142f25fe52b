package grammar

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"sandwich/runtime/grammar/internal/automaton"
)

// testVocab has all single bytes, two tokens that end an answer, and n texts as tokenizers have.
func testVocab(n int, seed uint64) *Vocab {
	r := rand.New(rand.NewPCG(seed, 1))
	text := [][]byte{nil, nil}
	for b := range 256 {
		text = append(text, []byte{byte(b)})
	}
	bits := strings.Fields("\", \": \" , \" {\" \"} }} ]] [\" \"] : null true false 0 10 23 .5 the and name age " +
		"\\n \\\" a b é 日本")
	text = append(text, []byte(`"},{"`), []byte("\n  "), []byte("  "), []byte(` "`), []byte(`": `), []byte(`, "`))
	for _, b := range bits {
		text = append(text, []byte(b))
	}
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFG _-"
	for len(text) < n {
		w := make([]byte, 1+r.IntN(9))
		for i := range w {
			w[i] = letters[r.IntN(len(letters))]
		}
		if r.IntN(12) == 0 {
			w[r.IntN(len(w))] = "\"\\{}[]:,.\n\t0123"[r.IntN(15)]
		}
		text = append(text, w)
	}
	return NewVocab(text, []int32{0, 1})
}

// answer draws an answer of at most n tokens; it is whole unless cut.
func answer(t *testing.T, m *Matcher, r *rand.Rand, n int) (text string, cut bool) {
	t.Helper()
	var out []byte
	for left := n; left > 0; left-- {
		if m.MustEnd() {
			return string(out), false
		}
		mask := m.Mask(left)
		if mask.Count() == 0 {
			t.Fatalf("nothing may follow %q", out)
		}
		pick := r.IntN(mask.Count())
		id := int32(-1)
		for i := range int32(m.v.size) {
			if mask.Has(i) {
				if pick == 0 {
					id = i
					break
				}
				pick--
			}
		}
		if err := m.Accept(id); err != nil {
			t.Fatalf("behind %q: %v", out, err)
		}
		if m.v.Ends(id) {
			return string(out), false
		}
		out = append(out, m.v.text[id]...)
	}
	return string(out), !m.CanEnd()
}

// fromGBNF compiles a grammar within the default limits.
func fromGBNF(text string, v *Vocab) (*Grammar, error) {
	return NewMeter(context.Background(), Limits{}).FromGBNF(text, v)
}

// anyObject is the grammar of all JSON objects.
func anyObject() *Grammar {
	g, err := FromSchema([]byte(`{"type":"object"}`))
	if err != nil {
		panic(err) // it is a constant
	}
	return g
}

func schemaOf(t testing.TB, text string) *Grammar {
	t.Helper()
	g, err := FromSchema([]byte(text))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return g
}

// Answers under a schema are valid: here by expressions for the whole text without white space.
func TestAnswersOfSchemas(t *testing.T) {
	v := testVocab(3000, 1)
	r := rand.New(rand.NewPCG(1, 2))
	for schema, want := range map[string]string{
		`{"type":"boolean"}`:                                                     `^(true|false)$`,
		`{"type":"null"}`:                                                        `^null$`,
		`{"enum":["a","b",1,null,{"x":[1,2]}]}`:                                  `^("a"|"b"|1|null|\{"x":\[1,2\]\})$`,
		`{"const":"a\"b"}`:                                                       `^"a\\"b"$`,
		`{"type":"integer"}`:                                                     `^-?(0|[1-9]\d*)$`,
		`{"type":"integer","minimum":3,"maximum":127}`:                           `^([3-9]|[1-9]\d|1[01]\d|12[0-7])$`,
		`{"type":"integer","exclusiveMinimum":-5,"maximum":5}`:                   `^(-[1-4]|[0-5])$`,
		`{"type":"integer","multipleOf":7,"minimum":0,"maximum":30}`:             `^(0|7|14|21|28)$`,
		`{"type":"number","minimum":0.25,"maximum":0.5}`:                         `^0\.(2[5-9]\d*|[34]\d*|50*)$`,
		`{"type":"number","exclusiveMinimum":0,"exclusiveMaximum":1}`:            `^0\.\d*[1-9]\d*$`,
		`{"type":"string","maxLength":3}`:                                        `^"([^"\\]|\\u[0-9a-fA-F]{4}(\\u[dD][c-fC-F]..)?|\\.){0,3}"$`,
		`{"type":"string","minLength":2,"maxLength":2,"pattern":"^[a-c]+$"}`:     `^"[a-c]{2}"$`,
		`{"type":"string","pattern":"^(foo|ba[rz])\\d{2}$"}`:                     `^"(foo|ba[rz])\d{2}"$`,
		`{"type":"string","format":"uuid"}`:                                      `^"[0-9a-f]{8}-[0-9a-f]{4}-[1-5][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"$`,
		`{"type":"array","items":{"type":"boolean"},"minItems":1,"maxItems":2}`:  `^\[\s*(true|false)(\s*,\s*(true|false))?\s*\]$`,
		`{"type":"array","prefixItems":[{"const":1},{"const":2}],"items":false}`: `^\[(\s*1(\s*,\s*2)?)?\s*\]$`,
		`{"type":"object","properties":{"a":{"const":1},"b":{"const":2}},"required":["b"],"additionalProperties":false}`:                                                   `^\{(\s*"a"\s*:\s*1\s*,)?\s*"b"\s*:\s*2\s*\}$`,
		`{"allOf":[{"type":"object","properties":{"a":{"type":"integer"}},"additionalProperties":false},{"properties":{"a":{"minimum":8,"maximum":9}},"required":["a"]}]}`: `^\{\s*"a"\s*:\s*[89]\s*\}$`,
		`{"type":"number","multipleOf":0.25,"minimum":0,"maximum":1}`:                                                                                                      `^(0(\.0?)?|0\.(25|50?|75)|1(\.00?)?|0\.00?)$`,
		`{"type":"number","multipleOf":0.01,"exclusiveMinimum":-1,"maximum":1}`:                                                                                            `^(-?0(\.\d{1,2})?|1(\.00?)?)$`,
		`{"type":"number","minimum":0,"exclusiveMinimum":true,"maximum":0.5}`:                                                                                              `^0\.(0*[1-4]\d*|50*|0+[1-9]\d*)$`,
		`{"type":"integer","minimum":-3.5e38,"maximum":-999999999999999998}`:                                                                                               `^-99999999999999999[89]$`,
		`{"anyOf":[{"type":"array","minItems":3,"maxItems":2},{"type":"null"}]}`:                                                                                           `^null$`,
		`{"allOf":[{"const":1},{"anyOf":[{"const":2},{"type":"integer"}]}]}`:                                                                                               `^1$`,
		`{"anyOf":[{"const":1},{"type":"null"}]}`:                                                                                                                          `^(1|null)$`,
		`{"oneOf":[{"type":"integer","minimum":1,"maximum":1},{"type":"null"}]}`:                                                                                           `^(1|null)$`,
	} {
		g := schemaOf(t, schema)
		re := regexp.MustCompile(want)
		for range 40 {
			text, cut := answer(t, g.Matcher(v), r, 60)
			if cut || !json.Valid([]byte(text)) || !re.MatchString(text) {
				t.Fatalf("%s: %q (cut %v)", schema, text, cut)
			}
		}
	}
}

// Near the end of what may be generated answers are brought to their end.
func TestAnswersEnd(t *testing.T) {
	v := testVocab(3000, 2)
	r := rand.New(rand.NewPCG(3, 4))
	tree := `{"$defs":{"node":{"type":"object","properties":{"name":{"type":"string"},"children":{"type":"array",
		"items":{"$ref":"#/$defs/node"}}},"required":["name","children"]}},"$ref":"#/$defs/node"}`
	for _, g := range []*Grammar{schemaOf(t, tree), anyObject(), schemaOf(t, `{}`), schemaOf(t, `{"type":"array"}`)} {
		need := g.Matcher(v).Needs() + 1
		for i := range 60 {
			text, cut := answer(t, g.Matcher(v), r, need+i)
			if cut || !json.Valid([]byte(text)) {
				t.Fatalf("%d tokens: %q (cut %v)", need+i, text, cut)
			}
		}
	}
}

func TestRefusals(t *testing.T) {
	deep := strings.Repeat(`{"items":`, 400) + "true" + strings.Repeat("}", 400)
	for schema, path := range map[string]string{
		`{`:                                     "",
		`[]`:                                    "#",
		`{"type":"strin"}`:                      "#/type",
		`false`:                                 "#",
		`{"enum":[]}`:                           "#",
		`{"$ref":"#"}`:                          "#",
		`{"$ref":"http://example.com/x"}`:       "#/$ref",
		`{"$ref":"#/nowhere"}`:                  "#/$ref",
		`{"allOf":[{"$ref":"#"}]}`:              "#/allOf/0",
		`{"properties":{"a/b":{"contains":1}}}`: "#/properties/a~1b/contains",
		`{"not":{}}`:                            "#",
		`{"type":"array","uniqueItems":true,"minItems":200}`:                 "#/uniqueItems",
		`{"type":"string","pattern":"(a)\\1"}`:                               "#/pattern",
		`{"type":"string","pattern":"("}`:                                    "#/pattern",
		`{"type":"string","not":{"pattern":"^(a)b\\1"}}`:                     "#",
		`{"type":"string","not":{"maxLength":18446744073709551616}}`:         "#/not",
		`{"type":"integer","minimum":5,"maximum":4}`:                         "#",
		`{"type":"string","minLength":5,"maxLength":4}`:                      "#/maxLength",
		`{"type":"object","properties":{"a":false},"required":["a"]}`:        "#",
		`{"type":"object","properties":{"a":{"$ref":"#"}},"required":["a"]}`: "#",
		`{"oneOf":[{"type":"string","format":"regex"},{"type":"string"}]}`:   "#",
		`{"type":"integer","multipleOf":0}`:                                  "#/multipleOf",
		`{"type":"number","multipleOf":0.257}`:                               "#/multipleOf",
		`{"type":"number","minimum":1e30,"maximum":1e308}`:                   "#",
		`{"allOf":[{"const":1},{"const":2}]}`:                                "#",
		`{"a":1,"a":2}`:                                                      "#/a",
		deep:                                                                 "",
	} {
		_, err := FromSchema([]byte(schema))
		var e *automaton.Error
		if !errors.As(err, &e) || path != "" && e.Path != path {
			t.Errorf("%.80s: %v, want a refusal at %q", schema, err, path)
		}
	}
}

func TestGBNF(t *testing.T) {
	v := testVocab(3000, 3)
	r := rand.New(rand.NewPCG(5, 6))
	for text, want := range map[string]string{
		"root ::= \"a\" b* # the end\nb ::= \"b\" | [0-9]":                               `^a(b|\d)*$`,
		"root ::= (\"x\" |\n \"y\"){2,3} [^a-y\\n]":                                      `^[xy]{2,3}[^a-y\n]$`,
		"root ::= \"\\u00e9\" .?":                                                        `^é(?s:.)?$`,
		"root ::= expr\nexpr ::= term (\"+\" term)*\nterm ::= [0-9]+ | \"(\" expr \")\"": `^[0-9+()]+$`,
		"root ::= \"ab\"? \"\"":                                                          `^(ab)?$`,
	} {
		g, err := fromGBNF(text, nil)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		re := regexp.MustCompile(want)
		for range 30 {
			got, cut := answer(t, g.Matcher(v), r, 40)
			if cut || !re.MatchString(got) {
				t.Fatalf("%s: %q (cut %v)", text, got, cut)
			}
		}
	}
	for _, text := range []string{"", "x ::= \"a\"", "root ::= y", "root ::= root \"a\" | \"b\"", "root ::= \"a",
		"root ::= [a",
		"root ::= (\"a\"", "root ::= \"a\"{3,2}", "root ::= \"a\"{9999999999}", "root ::= \"\\q\"", "root ::= \"a\")",
		"root ::= [b-a]", "root ::= (\"\"){1,1000}", "root ::= root", "root ::= \"\xff\"", strings.Repeat("root ::= (",
			300)} {
		if _, err := fromGBNF(text, nil); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
}

// TestMaskIsAccept checks that a mask contains exactly the tokens that Accept accepts, however the
// mask was computed.
func TestMaskIsAccept(t *testing.T) {
	v := testVocab(2000, 4)
	r := rand.New(rand.NewPCG(7, 8))
	grammars := []*Grammar{anyObject(), schemaOf(t, `{"type":"string","maxLength":9}`),
		schemaOf(t, `{"anyOf":[{"type":"string","maxLength":4},{"type":"string","pattern":"^[a-e ]*$"}]}`),
		schemaOf(t, `{"properties":{"name":{"type":"string","minLength":3},"nam":{}}}`)}
	if g, err := fromGBNF("root ::= .*", nil); err != nil {
		t.Fatal(err)
	} else {
		grammars = append(grammars, g)
	}
	for i, g := range grammars {
		m := g.Matcher(v)
		for step := range 60 {
			mask := m.Mask(1 << 20)
			at := m.at
			var allowed []int32
			for id := range int32(v.size) {
				err := m.Accept(id)
				m.at = at
				if mask.Has(id) != (err == nil) {
					t.Fatalf("grammar %d, step %d: token %q, mask %v, accept %v", i, step, v.text[id], mask.Has(id),
						err)
				}
				if err == nil && id > 1 {
					allowed = append(allowed, id)
				}
			}
			if len(allowed) == 0 {
				break
			}
			if err := m.Accept(allowed[r.IntN(len(allowed))]); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestLargeSchemas(t *testing.T) {
	var enum, tools []string
	for i := range 10000 {
		enum = append(enum, fmt.Sprintf("%q", fmt.Sprintf("value %d of many", i*i)))
	}
	v := testVocab(3000, 5)
	r := rand.New(rand.NewPCG(9, 1))
	g := schemaOf(t, `{"enum":[`+strings.Join(enum, ",")+`]}`)
	if text, cut := answer(t, g.Matcher(v), r, 100); cut || !strings.Contains(text, "of many") {
		t.Error(text)
	}
	for i := range 300 {
		tools = append(tools,
			fmt.Sprintf(`{"type":"object","properties":{"tool":{"const":"t%d"},"path":{"type":"string"},
			"n":{"type":"integer","minimum":0,"maximum":%d}},"required":["tool","n"]}`, i, i+5))
	}
	g = schemaOf(t, `{"anyOf":[`+strings.Join(tools, ",")+`]}`)
	if text, cut := answer(t, g.Matcher(v), r, 200); cut || !json.Valid([]byte(text)) {
		t.Error(text)
	}
}

func BenchmarkMask(b *testing.B) {
	v := testVocab(150000, 6)
	g := schemaOf(b,
		`{"type":"object","properties":{"name":{"type":"string"},"tags":{"type":"array","items":{"type":"string","maxLength":40}},
		"age":{"type":"integer"},"kind":{"enum":["red","green","blue"]}},"required":["name","tags","age"]}`)
	for range b.N {
		m := g.Matcher(v)
		m.Mask(1 << 20)
		for _, c := range `{"name":"Ann","tags":["abc"],"age":12,"kind":"red"` {
			if err := m.AcceptText([]byte(string(c))); err != nil {
				b.Fatal(err)
			}
			m.Mask(1 << 20)
		}
	}
}

// TestMasksOfPatterns checks masks of strings of several patterns at once: the shortcuts for bytes
// with one continuation, for what a stack leads to, and for tokens with line feeds give the masks
// that Accept gives.
func TestMasksOfPatterns(t *testing.T) {
	v := testVocab(600, 9)
	for seed := range uint64(12) {
		r := schemaMaker{rand.New(rand.NewPCG(seed, 97)), 1}
		text, err := json.Marshal(object{"type": "array", "minItems": 2,
			"items": object{"anyOf": []any{r.text(), r.text(), r.text()}}})
		if err != nil {
			t.Fatal(err)
		}
		if g, err := FromSchema(text); err == nil {
			consistent(t, g, v, seed)
		}
	}
	for _, text := range []string{`root ::= ([^"]+ "\n" | [^\n]* "x")`,
		`root ::= ("a" [^"\\\x00-\x1f]* | [^x]*) "\n"`} {
		g, err := fromGBNF(text, nil)
		if err != nil {
			t.Fatal(err)
		}
		for seed := range uint64(3) {
			consistent(t, g, v, seed)
		}
	}
}
