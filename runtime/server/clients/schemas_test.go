package clients

import (
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/openai/openai-go"
	"github.com/openai/openai-go/option"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

var schemas = flag.Int("schemas", 0, "schemas that TestSchemas asks answers of; a fifth as many tool sets for "+
	"TestToolSets")

var first = flag.Int("first", 0, "the schema to begin with, for runs in parts")

// batch is the number of concurrent requests.
const batch = 8

// tally counts the outcomes of answers.
type tally struct {
	sync.Mutex
	whole, cut, refused int
	why                 map[string]int
}

// isWhole counts an answer and reports whether it is complete.
func (c *tally) isWhole(finish string) bool {
	c.Lock()
	defer c.Unlock()
	if finish == "length" {
		c.cut++
		return false
	}
	c.whole++
	return true
}

func (c *tally) refuse(err error) {
	c.Lock()
	defer c.Unlock()
	c.refused++
	message := err.Error()
	if _, rest, ok := strings.Cut(message, "cannot be used: "); ok {
		message = rest
	}
	if _, rest, ok := strings.Cut(message, ": "); ok {
		message = rest // without the path
	}
	c.why[fmt.Sprintf("%.90s", message)]++
}

// inBatches calls f for 0 to n-1, up to batch at a time.
func inBatches(n int, f func(i int)) {
	var all sync.WaitGroup
	next := make(chan int)
	for range batch {
		all.Go(func() {
			for i := range next {
				f(i)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	all.Wait()
}

// validator is a schema compiled by an independent validator.
func validator(t *testing.T, schema any) *jsonschema.Schema {
	t.Helper()
	text, err := json.Marshal(schema)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource("schema.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("schema.json")
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return s
}

func valid(s *jsonschema.Schema, text string) error {
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		return err
	}
	return s.Validate(doc)
}

// TestSchemas asks for answers under generated schemas, at temperatures 0 and 1 and eight at once.
// An independent validator accepts each complete answer, and few are truncated.
func TestSchemas(t *testing.T) {
	if *schemas == 0 {
		t.Skip("it takes minutes: make schemas")
	}
	c := connect(t)
	counts := tally{why: map[string]int{}}
	inBatches(2**schemas, func(i int) {
		seed := uint64(*first + i/2)
		m := maker{rand.New(rand.NewPCG(seed, 2))}
		schema := m.root()
		resp, err := c.Chat.Completions.New(t.Context(), openai.ChatCompletionNewParams{
			Model: "any", Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("Go on.")},
			MaxCompletionTokens: openai.Int(300), Temperature: openai.Float(float64(i % 2)), Seed: openai.Int(int64(i)),
		}, option.WithJSONSet("response_format", map[string]any{"type": "json_schema",
			"json_schema": map[string]any{"name": "answer", "strict": true, "schema": schema}}))
		if err != nil {
			counts.refuse(err)
			if !strings.Contains(err.Error(), "#") {
				t.Errorf("schema %d is refused without a path: %v", seed, err)
			}
			return
		}
		text := resp.Choices[0].Message.Content
		if !counts.isWhole(resp.Choices[0].FinishReason) {
			return
		}
		if err := valid(validator(t, schema), text); err != nil {
			shown, _ := json.Marshal(schema)
			t.Errorf("schema %d: %.2000s\nallows %.2000s\n%v", seed, shown, text, err)
		}
	})
	t.Logf("%d schemas: %d answers are whole and valid, %d cut, %d refused: %v", *schemas, counts.whole, counts.cut,
		counts.refused, counts.why)
	if counts.cut*20 > counts.whole {
		t.Errorf("more than one answer in 20 is cut")
	}
	if counts.refused*5 > counts.whole {
		t.Errorf("more than a fifth is refused")
	}
}

// TestUnsatisfiable checks that unsatisfiable schemas are refused with the path.
func TestUnsatisfiable(t *testing.T) {
	c := connect(t)
	for _, schema := range []string{
		`{"type":"integer","minimum":5,"maximum":4}`, `{"type":"string","enum":[1,2]}`, `{"not":{}}`,
		`{"type":"object","properties":{"a":false},"required":["a"]}`, `{"const":1,"enum":[2]}`,
		`{"type":"array","minItems":3,"maxItems":2}`, `{"allOf":[{"type":"string"},{"type":"null"}]}`,
		`{"$ref":"#/$defs/a","$defs":{"a":{"type":"object","properties":{"x":{"$ref":"#/$defs/a"}},"required":["x"]}}}`,
		`{"type":"string","pattern":"^a{3}$","maxLength":2}`,
		`{"type":"array","contains":{"const":1},"items":{"const":2}}`,
		`{"$ref":"http://127.0.0.1:1/schema.json"}`, `{"$ref":"#/$defs/missing"}`,
	} {
		_, err := c.Chat.Completions.New(t.Context(), openai.ChatCompletionNewParams{
			Model: "any", Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("Go on.")},
		}, option.WithJSONSet("response_format", map[string]any{"type": "json_schema",
			"json_schema": map[string]any{"name": "answer", "schema": json.RawMessage(schema)}}))
		if err == nil || !strings.Contains(err.Error(), "400") || !strings.Contains(err.Error(), "#") {
			t.Errorf("%s: %v", schema, err)
		}
	}
}

// TestToolSets asks for calls of generated tools. Each call names one of them and has arguments
// that its schema allows.
func TestToolSets(t *testing.T) {
	if *schemas == 0 {
		t.Skip("it takes minutes: make schemas")
	}
	c := connect(t, "--ctx", "16384") // tools are schemas in the prompt
	counts := tally{why: map[string]int{}}
	inBatches(2*(*schemas/5), func(i int) {
		m := maker{rand.New(rand.NewPCG(uint64(*first/5+i/2), 3))}
		var tools []map[string]any
		names := map[string]any{}
		for n := range 1 + m.IntN(11) {
			name := fmt.Sprintf("%s_%d", m.pick("read", "write-file", "find.all", "mcp__fs__list"), n)
			parameters := m.object(1)
			names[name] = parameters
			tools = append(tools, map[string]any{"type": "function", "function": map[string]any{"name": name,
				"description": "Does something.", "parameters": parameters}})
		}
		resp, err := c.Chat.Completions.New(t.Context(), openai.ChatCompletionNewParams{
			Model: "any", Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("Go on.")},
			MaxCompletionTokens: openai.Int(400), Temperature: openai.Float(float64(i % 2)), Seed: openai.Int(int64(i)),
		}, option.WithJSONSet("tools", tools), option.WithJSONSet("tool_choice", "required"),
			option.WithJSONSet("parallel_tool_calls", i%4 < 2))
		if err != nil {
			counts.refuse(err)
			t.Errorf("tool set %d: %v", i/2, err)
			return
		}
		if !counts.isWhole(resp.Choices[0].FinishReason) {
			return
		}
		if len(resp.Choices[0].Message.ToolCalls) == 0 {
			t.Errorf("tool set %d: no call in %s", i/2, resp.RawJSON())
		}
		for _, call := range resp.Choices[0].Message.ToolCalls {
			schema, known := names[call.Function.Name]
			if !known {
				t.Errorf("tool set %d: a call of %q", i/2, call.Function.Name)
				continue
			}
			if err := valid(validator(t, schema), call.Function.Arguments); err != nil {
				shown, _ := json.Marshal(schema)
				t.Errorf("tool set %d: %s\nallows %s\n%v", i/2, shown, call.Function.Arguments, err)
			}
		}
	})
	t.Logf("%d tool sets: the calls of %d answers are whole and valid, %d are cut", *schemas/5, counts.whole,
		counts.cut)
	if counts.cut*20 > counts.whole {
		t.Errorf("more than one answer in 20 is cut")
	}
}

// maker generates schemas as programs send them. It shares no code with the tests of
// runtime/grammar.
type maker struct{ *rand.Rand }

type object = map[string]any

func (m maker) pick(of ...string) string { return of[m.IntN(len(of))] }

func (m maker) chance(percent int) bool { return m.IntN(100) < percent }

// root returns a schema with definitions, some of which are recursive.
func (m maker) root() any {
	s := m.value(3).(object)
	if m.chance(4) {
		s = object{"type": "object", "required": []any{"name"}, "additionalProperties": false,
			"properties": object{"name": object{"enum": m.names(10_000)}}}
	}
	s["$defs"] = object{
		"node": object{"type": "object", "additionalProperties": false, "required": []any{"label"},
			"properties": object{"label": m.text(), "next": object{"$ref": "#/$defs/node"},
				"children": object{"type": "array", "items": object{"$ref": "#/$defs/node"},
					"maxItems": 1 + m.IntN(3)}}},
		"expression": object{"anyOf": []any{object{"type": "number"}, object{"type": "array", "minItems": 2,
			"maxItems":    3,
			"prefixItems": []any{object{"enum": []any{"+", "-", "*"}}},
			"items":       object{"$ref": "#/$defs/expression"}}}},
		"id": object{"type": "string", "pattern": "^[A-Z]{2}-[0-9]{3,5}$", "description": "an id"},
	}
	return s
}

func (m maker) names(n int) (out []any) {
	seen := map[string]bool{}
	for len(out) < n {
		w := ""
		for range 2 + m.IntN(4) {
			w += m.pick("ka", "lo", "mi", "ne", "tu", "ße", "日", " ", "\"", "zz", "éa", "/", "0")
		}
		if !seen[w] {
			seen[w] = true
			out = append(out, w)
		}
	}
	return out
}

func (m maker) value(depth int) any {
	if depth == 0 {
		return m.scalar()
	}
	switch m.IntN(12) {
	case 0, 1, 2, 3:
		return m.object(depth)
	case 4, 5:
		return m.array(depth)
	case 6:
		return object{"anyOf": []any{m.value(depth - 1), m.value(depth - 1), object{"type": "null"}}}
	case 7:
		return object{"oneOf": []any{m.tagged("circle", depth), m.tagged("square", depth)}}
	case 8:
		return object{"$ref": "#/$defs/" + m.pick("node", "expression", "id")}
	case 9:
		return object{"allOf": []any{m.open(depth), m.open(depth)}}
	}
	return m.scalar()
}

// tagged returns an object with a discriminating property.
func (m maker) tagged(kind string, depth int) object {
	s := m.object(depth)
	s["properties"].(object)["kind"] = object{"const": kind}
	s["required"] = append([]any{"kind"}, s["required"].([]any)...)
	return s
}

// open returns an object that does not restrict other properties.
func (m maker) open(depth int) object {
	s := m.object(depth)
	delete(s, "additionalProperties")
	delete(s, "patternProperties")
	return s
}

func (m maker) object(depth int) object {
	props, required := object{}, []any{}
	for range m.IntN(5) {
		name := m.pick("name", "street address", "größe", "件数", "a\"b", "x/y", "value", "tags", "_id")
		if _, met := props[name]; met {
			continue
		}
		if props[name] = m.value(depth - 1); m.chance(60) {
			required = append(required, name)
		}
	}
	s := object{"type": "object", "properties": props, "required": required}
	switch m.IntN(6) {
	case 0:
		s["additionalProperties"] = m.scalar()
	case 1:
		s["patternProperties"] = object{"^x-[a-z]+$": m.scalar()}
		s["additionalProperties"] = false
	case 2:
	default:
		s["additionalProperties"] = false
	}
	if m.chance(10) && len(required) > 0 {
		s["dependentRequired"] = object{"tags": []any{required[0]}}
	}
	return s
}

func (m maker) array(depth int) object {
	s := object{"type": "array", "items": m.value(depth - 1)}
	if least := m.IntN(3); least > 0 {
		s["minItems"] = least
	}
	if m.chance(70) {
		s["maxItems"] = 2 + m.IntN(4)
	}
	switch m.IntN(8) {
	case 0:
		s["contains"] = m.scalar()
		s["items"] = object{}
	case 1:
		s["prefixItems"] = []any{m.scalar(), m.scalar()}
	case 2:
		s["items"], s["uniqueItems"] = object{"enum": []any{"a", "b", 3, nil, "é"}}, true
	}
	return s
}

func (m maker) scalar() any {
	switch m.IntN(9) {
	case 0:
		return object{"type": "boolean"}
	case 1:
		return object{"type": []any{"integer", "null"}}
	case 2:
		lo := m.IntN(2000) - 1000
		return object{"type": "integer", "minimum": lo, "maximum": lo + m.IntN(5000)}
	case 3:
		return object{"type": "number", "exclusiveMinimum": -1.5, "maximum": float64(m.IntN(100)) / 4}
	case 4:
		return object{"type": "integer", "multipleOf": 1 + m.IntN(100)}
	case 5:
		return object{"enum": m.names(1 + m.IntN(8))}
	case 6:
		return object{"const": m.pick("yes", "ünï", "a\\b", "\u2028")}
	}
	return m.text()
}

func (m maker) text() object {
	s := object{"type": "string"}
	switch m.IntN(4) {
	case 0:
		s["pattern"] = m.pick(`^\p{Lu}\p{L}{0,8}$`, `^[ぁ-ん]{1,4}$`, `^(\+\d{1,3} )?\d{3}-\d{4}$`, `^[^\s"]{1,12}$`,
			`[aeiou]{2}`,
			`^(GET|POST) /[a-z/]*$`, `^#[0-9a-fA-F]{6}$`, `^.{0,20}\.go$`, `^[\w.]+@[\w.]+$`)
		return s
	case 1:
		s["format"] = m.pick("date", "date-time", "time", "uuid", "email", "ipv4", "ipv6", "uri", "hostname",
			"duration")
		return s
	}
	if m.chance(60) {
		s["maxLength"] = 4 + m.IntN(40)
	}
	if m.chance(30) {
		s["minLength"] = m.IntN(4)
	}
	return s
}
