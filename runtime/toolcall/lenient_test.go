package toolcall

import (
	"errors"
	"strings"
	"testing"

	"sandwich/runtime/api"
	"sandwich/runtime/grammar"
)

// compiled compiles the grammar of a required call of a tool.
func compiled(t *testing.T, format, schema string, strict bool) (*grammar.Grammar, []string, error) {
	t.Helper()
	r := &api.Request{Tools: []api.Tool{{Name: "other"}, {Name: "f", Parameters: schema, Strict: strict}},
		ToolChoice: api.ToolChoice{Mode: api.ToolsRequired, Names: []string{"f"}}}
	return named0(t, format).Grammar(grammar.NewMeter(t.Context(), grammar.Limits{}), r, letters, false)
}

// takes reports whether an answer may call the tool with the arguments.
func takes(g *grammar.Grammar, arguments string) bool {
	m := g.Matcher(grammar.NewVocab(nil, nil))
	defer m.End()
	call := hermes.Write([]api.ToolCall{{Name: "f", Arguments: arguments}})
	return m.AcceptText([]byte(call)) == nil && m.CanEnd()
}

// TestUnsupportedKeywords checks that supported parts of a partly unsupported schema are enforced,
// that warnings name the other parts, and that a strict tool is refused with the path.
func TestUnsupportedKeywords(t *testing.T) {
	for _, c := range []struct {
		schema   string
		paths    []string // of keywords that are not enforced
		yes, no  []string // arguments
		anything bool     // also arguments that match no object of the schema
	}{
		{`{"type":"object","properties":{"q":{"type":"string","pattern":"^(a|b)\\1$","maxLength":3},"n":{"type":"integer"}},
			"required":["q","n"],"additionalProperties":false}`, []string{"#/properties/q/pattern"},
			[]string{`{"q":"abc","n":1}`}, []string{`{"q":"abcd","n":1}`, `{"q":"a"}`, `{"q":"a","n":1,"x":2}`, `{"n":1}`}, false},
		{`{"type":"object","properties":{"a":{"type":"array","items":{"type":"string","pattern":"(?<=a$)b"},"maxItems":2},
			"b":{"type":"integer","multipleOf":0.257}},"required":["a"]}`,
			[]string{"#/properties/a/items/pattern", "#/properties/b/multipleOf"},
			[]string{`{"a":["x"],"b":3}`}, []string{`{"a":["x","y","z"]}`, `{"a":[1]}`, `{"a":[],"b":"x"}`}, false},
		{`{"type":"object","properties":{"k":{"oneOf":[{"type":"string","format":"regex"},{"type":"string"}]}},
			"required":["k"]}`, []string{"#/properties/k/oneOf"}, []string{`{"k":"x"}`}, []string{`{"k":1}`}, false},
		{`{"type":"object","properties":{"k":{"allOf":[{"type":"string"},{"pattern":"(a)\\1"}]}},"required":["k"]}`,
			[]string{"#/properties/k/allOf/1/pattern"}, []string{`{"k":"x"}`}, []string{`{"k":1}`}, false},
		{`{"type":"object","properties":{"k":{"$ref":"#/$defs/k"},"m":{"$ref":"http://example.com/m"}},
			"$defs":{"k":{"type":"string","pattern":"("}},"required":["k","m"]}`,
			[]string{"#/$defs/k/pattern", "#/properties/m/$ref"}, []string{`{"k":"x","m":[1]}`}, []string{`{"k":1,"m":1}`,
				`{"k":"x"}`}, false},
		{`{"type":"object","properties":{"k":{"type":"strin"},"n":{"type":"integer"}},"required":["k","n"]}`,
			[]string{"#/properties/k/type"}, []string{`{"k":[],"n":1}`}, []string{`{"k":1,"n":"x"}`}, false},
		{`{"type":"object","properties":{"k":7,"n":{"type":"integer"}},"patternProperties":{"(":{}},"required":["k","n"]}`,
			[]string{"#/properties/k", "#/patternProperties/("}, []string{`{"k":[],"n":1}`}, []string{`{"k":1,"n":"x"}`}, false},
		{`{"type":"object","properties":{"k":{"type":"string","minLength":5,"maxLength":4},"n":{"type":"integer"}},
			"required":["k","n"]}`, []string{"#/properties/k/maxLength"}, []string{`{"k":"12345","n":1}`},
			[]string{`{"k":"1234","n":1}`, `{"k":"12345","n":"x"}`}, false},
		{`{"type":"object","properties":{"s":{"type":"string","pattern":"(a|b)*a(a|b){15}c.*(a|b){9}d"},
			"n":{"type":"integer"}},"allOf":[{"properties":{"s":{"pattern":"b(a|b){15}c"}}}],"required":["s","n"]}`,
			[]string{"#/properties/s"}, []string{`{"s":"baaaaaaaaaaaaaaac","n":1}`}, []string{`{"s":1,"n":1}`, `{"s":"x"}`}, false},
		{`{"type":"object","properties":{"a":{"$ref":"#"}},"required":["a"]}`, []string{"#/properties/a/$ref"}, []string{`{"a":1}`}, []string{`{"x":1}`}, true},
		{`{"a":1,"a":2}`, []string{"#"}, []string{`{"x":1}`}, nil, true},
	} {
		g, warnings, err := compiled(t, "hermes", c.schema, false)
		if err != nil {
			t.Errorf("%s: %v", c.schema, err)
			continue
		}
		all := strings.Join(warnings, "\n")
		for _, path := range c.paths {
			if !strings.Contains(all, "tools[1] (f): "+path) {
				t.Errorf("%s: no warning names %s: %s", c.schema, path, all)
			}
		}
		if len(warnings) > len(c.paths) {
			t.Errorf("%s: more than the expected warnings: %s", c.schema, all)
		}
		for _, arguments := range c.yes {
			if !takes(g, arguments) {
				t.Errorf("%s: %s is refused", c.schema, arguments)
			}
		}
		for _, arguments := range c.no {
			if takes(g, arguments) {
				t.Errorf("%s: %s is taken", c.schema, arguments)
			}
		}
		var invalid *api.InvalidError
		_, _, err = compiled(t, "hermes", c.schema, true)
		if !errors.As(err, &invalid) || invalid.Param != "tools[1]" ||
			!strings.Contains(err.Error(), "(f) is strict") || !strings.Contains(err.Error(), "#") {
			t.Errorf("%s: a strict tool: %v", c.schema, err)
		}
	}
}

// TestNormalizedSchemas checks that null keywords count as absent and that types may be upper case,
// for every kind of format.
func TestNormalizedSchemas(t *testing.T) {
	const schema = `{"type":"OBJECT","properties":{"q":{"type":"STRING","enum":null,"description":null},
		"n":{"type":["INTEGER","null"],"format":null},"o":{"type":"TYPE_UNSPECIFIED"}},"required":null,"enum":null,
		"additionalProperties":false}`
	for _, strict := range []bool{false, true} {
		g, warnings, err := compiled(t, "hermes", schema, strict)
		if err != nil || warnings != nil {
			t.Fatalf("%v, %q", err, warnings)
		}
		for arguments, want := range map[string]bool{`{"q":"x","n":1,"o":[]}`: true, `{}`: true, `{"n":null}`: true,
			`{"q":1}`: false, `{"n":"x"}`: false, `{"z":1}`: false} {
			if takes(g, arguments) != want {
				t.Errorf("%s is taken: %v", arguments, !want)
			}
		}
	}
	for _, none := range []string{`{"type":"object","properties":null}`, `{"properties":null,"required":null}`} {
		if g, warnings, err := compiled(t, "hermes", none, true); err != nil || warnings != nil || !takes(g, `{"a":1}`) {
			t.Errorf("%s: %v, %q", none, err, warnings)
		}
	}
	params := readParams([]byte(schema))
	if len(params) != 3 || !params[0].text || params[0].choices != nil {
		t.Errorf("parameters are read as %+v", params)
	}
	if _, warnings, err := compiled(t, "qwen3-coder", schema, true); err != nil || warnings != nil {
		t.Errorf("arguments one by one: %v, %q", err, warnings)
	}
}

// TestUnsupportedArguments checks formats with named arguments: an unsupported keyword of one
// argument does not affect the others.
func TestUnsupportedArguments(t *testing.T) {
	const schema = `{"type":"object","properties":{"a":{"type":"array","items":{"pattern":"(a)\\1","type":"string"}},
		"n":{"type":"integer"}},"required":["a","n"]}`
	f := named0(t, "qwen3-coder")
	g, warnings, err := compiled(t, "qwen3-coder", schema, false)
	if err != nil || len(warnings) != 1 || !strings.Contains(warnings[0], "#/properties/a/items/pattern") {
		t.Fatalf("%v, %q", err, warnings)
	}
	for arguments, want := range map[string]bool{`{"a":["x"],"n":3}`: true, `{"a":[1],"n":3}`: false,
		`{"a":["x"],"n":true}`: false} {
		m := g.Matcher(grammar.NewVocab(nil, nil))
		got := m.AcceptText([]byte(f.Write([]api.ToolCall{{Name: "f", Arguments: arguments}}))) == nil && m.CanEnd()
		if m.End(); got != want {
			t.Errorf("%s is taken: %v", arguments, got)
		}
	}
}

// TestRawArguments checks that formats with unquoted strings enforce enum and const and warn of the
// keywords that they do not enforce.
func TestRawArguments(t *testing.T) {
	const schema = `{"type":"object","properties":{"c":{"type":"string","const":"x y"},
		"p":{"type":"string","pattern":"^a","maxLength":3,"minLength":null}},"required":["c","p",7]}`
	g, warnings, err := compiled(t, "qwen3-coder", schema, true)
	all := strings.Join(warnings, "\n")
	if err != nil || len(warnings) != 2 || !strings.Contains(all, "#/properties/p/pattern of its parameters") ||
		!strings.Contains(all, "#/properties/p/maxLength of its parameters") {
		t.Fatalf("%v, %q", err, warnings)
	}
	f := named0(t, "qwen3-coder")
	for arguments, want := range map[string]bool{`{"c":"x y","p":"long text"}`: true, `{"c":"z","p":"a"}`: false,
		`{"c":"x y"}`: false} {
		m := g.Matcher(grammar.NewVocab(nil, nil))
		got := m.AcceptText([]byte(f.Write([]api.ToolCall{{Name: "f", Arguments: arguments}}))) == nil && m.CanEnd()
		if m.End(); got != want {
			t.Errorf("%s is taken: %v", arguments, got)
		}
	}
}

// TestLimitsOfTools checks that a tool whose schema exceeds the limits of compilation is refused by
// name, strict or not.
func TestLimitsOfTools(t *testing.T) {
	const schema = `{"type":"object","properties":{"n":{"type":"integer","multipleOf":4093,
		"minimum":-123456789012345,"maximum":987654321012345}}}`
	for _, strict := range []bool{false, true} {
		_, _, err := compiled(t, "hermes", schema, strict)
		var e *grammar.Error
		if !errors.As(err, &e) || !e.Limited() || !strings.Contains(err.Error(), "tools[1] (f): #/properties/n: ") {
			t.Errorf("strict %v: %v", strict, err)
		}
	}
}

// TestUnsupportedPattern checks that a strict tool whose pattern has a backreference is refused by
// path, and that without strict the rest of its schema is enforced.
func TestUnsupportedPattern(t *testing.T) {
	const schema = `{"type":"object","properties":{"q":{"type":"string","pattern":"^(a|b)\\1$"},
		"n":{"type":"integer"}},"required":["q","n"],"additionalProperties":false}`
	if _, _, err := compiled(t, "hermes", schema, true); err == nil ||
		!strings.Contains(err.Error(), "#/properties/q/pattern") {
		t.Errorf("%v", err)
	}
	g, warnings, err := compiled(t, "hermes", schema, false)
	if err != nil || len(warnings) != 1 || !takes(g, `{"q":"zz","n":3}`) || takes(g, `{"q":"zz","n":"3"}`) {
		t.Errorf("without strict: %v, %q", err, warnings)
	}
}

// TestNoParameters checks that a tool without parameters, or with an empty list of properties, is
// called with an empty object, and one with an empty schema with any object.
func TestNoParameters(t *testing.T) {
	for _, c := range []struct {
		schema string
		any    bool
	}{{"", false}, {"null", false}, {"{}", true}, {`{"type":"object"}`, true},
		{`{"type":"object","properties":{}}`, false},
		{`{"type": "object", "properties": { }, "required": [], "title": "Now", "$schema": "x"}`, false},
		{`{"type":"object","properties":{},"additionalProperties":true}`, true},
		{`{"type":"object","properties":{},"patternProperties":{"^a":{}}}`, true},
		{`{"type":"object","properties":{"a":{}}}`, true}} {
		g, _, err := compiled(t, "hermes", c.schema, false)
		if err != nil {
			t.Errorf("%q: %v", c.schema, err)
			continue
		}
		if !takes(g, "{}") || takes(g, `{"a":1}`) != c.any {
			t.Errorf("%q: {} %v, {\"a\":1} %v; want true, %v", c.schema, takes(g, "{}"), takes(g, `{"a":1}`), c.any)
		}
	}
}
