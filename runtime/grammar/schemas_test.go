package grammar

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"sandwich/runtime/grammar/internal/automaton"
)

// schemaMaker draws schemas of everything that is supported, alone and together.
type schemaMaker struct {
	*rand.Rand
	defs int
}

type object = map[string]any

func (r schemaMaker) pick(of ...any) any { return of[r.IntN(len(of))] }

func (r schemaMaker) chance(percent int) bool { return r.IntN(100) < percent }

var someNames = []string{"a", "ab", "abc", "name", "näme", "日本", "a\"b", "x y", "", "\n", "kind"}

func (r schemaMaker) schema(depth int) any {
	if depth <= 0 {
		return r.leaf()
	}
	switch r.IntN(16) {
	case 13:
		s := r.object(depth)
		s["dependentRequired"] = object{r.name(): []any{r.name(), r.name()}}
		if r.chance(30) {
			s["dependentSchemas"] = object{r.name(): r.object(depth - 1)}
		}
		return s
	case 14:
		return object{"type": r.pick("string", "integer", []any{"string", "null", "number"}), "not": r.leaf()}
	case 15:
		return object{"if": r.schema(depth - 1), "then": r.schema(depth - 1), "else": r.schema(depth - 1)}
	case 0, 1, 2:
		return r.object(depth)
	case 3, 4:
		return r.array(depth)
	case 5:
		return object{r.pick("anyOf", "oneOf").(string): r.list(1+r.IntN(3), depth-1)}
	case 6:
		s, _ := r.schema(depth - 1).(object)
		if s == nil {
			s = object{}
		}
		s["allOf"] = r.list(1+r.IntN(2), depth-1)
		return s
	case 7:
		return object{"allOf": []any{r.number(), r.number()}}
	case 8:
		return object{"allOf": []any{r.object(depth), r.object(depth - 1)}}
	case 9:
		return object{"allOf": []any{r.array(depth), r.array(depth - 1)}}
	case 10:
		return object{"$ref": fmt.Sprintf("#/$defs/d%d", r.IntN(r.defs)), "description": "x"}
	}
	return r.leaf()
}

func (r schemaMaker) name() string { return someNames[r.IntN(len(someNames))] }

func (r schemaMaker) list(n, depth int) (out []any) {
	for range n {
		out = append(out, r.schema(depth))
	}
	return out
}

func (r schemaMaker) object(depth int) object {
	s := object{"type": "object"}
	props := object{}
	var required []any
	for range r.IntN(4) {
		name := someNames[r.IntN(len(someNames))]
		props[name] = r.schema(depth - 1)
		if r.chance(50) {
			required = append(required, name)
		}
	}
	if r.chance(8) {
		required = append(required, "undeclared")
	}
	if r.chance(15) {
		s["patternProperties"] = object{r.pick("^a", "b$", "^é[0-9]{1,3}$").(string): r.schema(depth - 1)}
	}
	if r.chance(10) {
		s["propertyNames"] = r.pick(object{"pattern": "^[a-f]+$"}, object{"enum": []any{"p", "q", "ab"}},
			object{"maxLength": 4}, object{"minLength": 2, "pattern": "^[^x]*$"}, object{"not": object{}}, true)
	}
	if len(props) > 0 {
		s["properties"] = props
	} else if r.chance(30) {
		s["minProperties"], s["maxProperties"] = r.IntN(3), 2+r.IntN(3)
		if r.chance(40) {
			s["propertyNames"] = r.pick(object{"pattern": "^[a-f]+$"}, object{"enum": []any{"p", "q", "r"}},
				object{"maxLength": 4})
		}
	} else if r.chance(20) {
		s["patternProperties"] = object{"^é[0-9]{1,3}$": r.schema(depth - 1)}
		s["additionalProperties"] = false
		return s
	}
	if len(required) > 0 {
		s["required"] = required
	}
	switch r.IntN(4) {
	case 0, 1:
		s["additionalProperties"] = r.chance(20)
	case 2:
		s["additionalProperties"] = r.schema(depth - 1)
	}
	if r.chance(10) {
		s["minProperties"] = r.IntN(4)
	}
	if r.chance(10) {
		s["maxProperties"] = r.IntN(5)
	}
	return s
}

func (r schemaMaker) array(depth int) object {
	s := object{"type": "array"}
	if r.chance(40) {
		s["prefixItems"] = r.list(1+r.IntN(3), depth-1)
	}
	switch r.IntN(4) {
	case 0:
		s["items"] = r.chance(30)
	case 1, 2:
		s["items"] = r.schema(depth - 1)
	}
	if r.chance(40) {
		s["minItems"] = r.IntN(4)
	}
	if r.chance(40) {
		s["maxItems"] = r.IntN(6)
	}
	switch {
	case r.chance(15):
		s["contains"] = r.schema(depth - 1)
		if r.chance(40) {
			s["minContains"] = r.IntN(3)
		}
		if r.chance(30) {
			s["maxContains"] = r.IntN(4)
		}
	case r.chance(12):
		s["uniqueItems"] = true
		if r.chance(60) {
			s["items"] = r.pick(object{"enum": []any{"a", 1, nil, "b", true}}, object{"enum": []any{1, 1.0, "x"}},
				object{"enum": []any{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"}})
		}
	}
	return s
}

func (r schemaMaker) leaf() any {
	switch r.IntN(11) {
	case 0:
		return object{"enum": []any{"a", "é\"\\", 1, 2.50, nil, true, []any{1, object{"x": "y"}}, "日本"}[r.IntN(5):]}
	case 1:
		return object{"const": r.pick("fixed", 3, nil, object{"a": 1}, "\u2028\n")}
	case 2, 3, 4:
		return r.number()
	case 5, 6, 7:
		return r.text()
	case 8:
		return object{"type": r.pick("boolean", "null", "integer", "number", "string")}
	case 9:
		return object{"type": []any{r.pick("boolean", "null"), r.pick("integer", "number"), "string"}, "maxLength": 4,
			"minimum": -2}
	}
	return r.pick(true, object{}, false, object{"description": "anything"})
}

func (r schemaMaker) number() object {
	s := object{"type": r.pick("integer", "number")}
	if r.chance(10) {
		delete(s, "type")
	}
	bound := func() any {
		return json.Number(r.pick("0", "-1", "7", "100", "-250", "0.5", "-0.25", "12.125", "1e3", "99999",
			"-3.0").(string))
	}
	if r.chance(50) {
		s[r.pick("minimum", "exclusiveMinimum").(string)] = bound()
	}
	if r.chance(50) {
		s[r.pick("maximum", "exclusiveMaximum").(string)] = bound()
	}
	if r.chance(25) {
		s["multipleOf"] = r.pick(1, 2, 3, 7, 10, 64, 4000)
	}
	return s
}

func (r schemaMaker) text() object {
	s := object{"type": "string"}
	switch r.IntN(5) {
	case 0, 1:
		s["pattern"] = r.pick("^[a-c]+$", "[0-9]{2}", "^(foo|ba[rz])", "é+$", "^.{2,5}$", `^\w+\s?\w*$`, "^日本?[^x]*$",
			`^\d+(\.\d+)?$`,
			"(a|a)*b", `\\|"`, "^$", "^(a|b){3,}[A-Z]?", "\\p{L}{2}", "a|^b$")
		if r.chance(15) {
			s["format"] = r.pick("date", "hostname", "uuid")
		}
	case 2:
		s["format"] = r.pick("date", "time", "date-time", "email", "ipv4", "ipv6", "uri", "uuid", "hostname", "unknown")
	}
	if r.chance(30) {
		s["minLength"] = r.IntN(6)
	}
	if r.chance(30) {
		s["maxLength"] = 3 + r.IntN(30)
	}
	return s
}

// root is a whole schema with definitions that refer to each other.
func (r schemaMaker) root() any {
	defs := object{}
	for i := range r.defs {
		defs[fmt.Sprintf("d%d", i)] = r.schema(2)
	}
	s, _ := r.schema(3).(object)
	if s == nil {
		s = r.object(2)
	}
	s["$defs"] = defs
	return s
}

func decode(t *testing.T, text string) any {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return v
}

// Whatever schema is taken, finished answers are valid under it for a checker of its own, and
// answers are finished where the shortest one fits.
func TestGeneratedSchemas(t *testing.T) {
	v := testVocab(3000, 7)
	const schemas = 400
	taken, answers, cuts := 0, 0, 0
	refusals := map[string]int{}
	for seed := range uint64(schemas) {
		r := schemaMaker{rand.New(rand.NewPCG(seed, 99)), 3}
		text, err := json.Marshal(r.root())
		if err != nil {
			t.Fatal(err)
		}
		g, err := FromSchema(text)
		if err != nil {
			var e *automaton.Error
			if !errors.As(err, &e) || !strings.HasPrefix(e.Path, "#") || strings.Contains(e.Path, "!") {
				t.Fatalf("seed %d: %s: refused without a path: %v", seed, text, err)
			}
			refusals[e.Message]++
			continue
		}
		taken++
		root := decode(t, string(text))
		need := g.Matcher(v).Needs() + 1
		for i := range 12 {
			got, cut := answer(t, g.Matcher(v), r.Rand, need+[]int{0, 1, 5, 40, 200}[i%5])
			if answers++; cut {
				cuts++
				continue
			}
			if !(checker{root}).valid(root, decode(t, got)) {
				t.Errorf("seed %d: %s\nallows %s", seed, text, got)
				break
			}
		}
	}
	t.Logf("%d of %d schemas taken, %d of %d answers cut; refused: %v", taken, schemas, cuts, answers, refusals)
	if cuts*20 > answers || taken < schemas/3 {
		t.Errorf("%d of %d schemas taken, %d of %d answers cut", taken, schemas, cuts, answers)
	}
}

// fuzzSeed is a schema of everything.
func fuzzSeed(seed uint64) []byte {
	text, err := json.Marshal(schemaMaker{rand.New(rand.NewPCG(seed, 98)), 2}.root())
	if err != nil {
		panic(err) // maps, lists and constants
	}
	return text
}
