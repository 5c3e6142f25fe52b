package grammar

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"
)

// TestDistinctItems checks arrays of at least two distinct items that are not constants.
func TestDistinctItems(t *testing.T) {
	manyTaken(t, testVocab(800, 6), 91, 90, 70, func(r schemaMaker) object {
		item := func() any {
			return r.pick(object{"type": "integer"}, object{"type": "integer", "minimum": 1, "maximum": 49},
				object{"type": "integer", "minimum": -5000, "maximum": 90000}, object{"type": "number"},
				object{"type": "number", "minimum": 0, "maximum": 1}, object{"type": "string"},
				object{"type": "string", "minLength": 3, "maxLength": 9}, object{"type": "string", "format": "uuid"},
				object{"type": "string", "pattern": "^id-[0-9]{4}$"}, object{"type": "string", "pattern": "^a{2,40}$"},
				object{"type": []any{"string", "null"}}, object{"type": "array", "items": object{"type": "boolean"}},
				object{"type": "number", "multipleOf": 0.5}, true, object{"$ref": "#/$defs/d"})
		}
		s := object{"type": "array", "uniqueItems": true, "items": item(), "minItems": r.IntN(5),
			"$defs": object{"d": object{"type": "object", "required": []any{"k"}, "additionalProperties": false,
				"properties": object{"k": object{"type": "string"}, "n": object{"type": "integer"}}}}}
		if r.chance(15) {
			s["items"], s["minItems"] = r.pick(object{"type": "integer"}, object{"type": "string"}), 9+r.IntN(12)
		}
		if r.chance(40) {
			s["maxItems"] = s["minItems"].(int) + r.IntN(4)
		}
		return s
	})
}

// TestMultiplesTogether checks multiples together with negated multiples.
func TestMultiplesTogether(t *testing.T) {
	manyTaken(t, testVocab(800, 6), 92, 120, 110, func(r schemaMaker) object {
		of := func() object { return object{"multipleOf": 1 + r.IntN(12)} }
		switch r.IntN(4) {
		case 0:
			return object{"type": "array", "maxItems": 5, "items": object{"type": "integer"}, "contains": of(),
				"minContains": 1 + r.IntN(2), "maxContains": 2 + r.IntN(2)}
		case 1:
			return object{"type": "integer", "allOf": []any{of(), of()}, "minimum": -r.IntN(500)}
		case 2:
			return object{"type": "integer", "multipleOf": 2, "not": object{"multipleOf": 3 + r.IntN(9)},
				"maximum": 100 + r.IntN(1000)}
		}
		return object{"type": "number", "allOf": []any{object{"multipleOf": 0.5}, object{"multipleOf": 0.2}}}
	})
}

// References by address, by anchors in other resources, and with escapes; and OpenAPI's nullable.
func TestAddresses(t *testing.T) {
	v := testVocab(400, 6)
	r := rand.New(rand.NewPCG(3, 93))
	for text, want := range map[string]string{
		`{"$id":"https://example.com/root.json","$ref":"item.json","$defs":{"i":{"$id":"item.json","const":1}}}`:                                                            "1",
		`{"$ref":"https://example.com/x/item#/$defs/a","$defs":{"i":{"$id":"https://example.com/x/item","$defs":{"a":{"const":2}}}}}`:                                       "2",
		`{"$id":"urn:a:b","$ref":"urn:a:c#name","$defs":{"i":{"$id":"urn:a:c","$defs":{"a":{"$anchor":"name","const":3}}}}}`:                                                "3",
		`{"$ref":"#/$defs/i","$defs":{"a":{"const":0},"i":{"$id":"inner.json","$ref":"#/$defs/a","$defs":{"a":{"const":4}}}}}`:                                              "4",
		`{"$ref":"#/definitions/List%3Cstring%3E","definitions":{"List<string>":{"const":5}}}`:                                                                              "5",
		`{"$schema":"http://json-schema.org/draft-04/schema#","id":"http://e/r","$ref":"x#/definitions/a","definitions":{"x":{"id":"x","definitions":{"a":{"enum":[6]}}}}}`: "6",
		`{"$schema":"http://json-schema.org/draft-07/schema#","$ref":"#here","definitions":{"x":{"$id":"#here","const":7}}}`:                                                "7",
		`{"$ref":"#/$defs/i","$defs":{"i":{"$id":"http://e/i","$ref":"#/$defs/shared"},"shared":{"const":8}}}`:                                                              "8",
		`{"const":{"$ref":"x"},"$defs":{"x":{"$id":"x","const":8}}}`:                                                                                                        `{"$ref":"x"}`,
		`{"$id":"http://e/r","$ref":"a%25b#c","$defs":{"a%b":{"$id":"a%25b","$anchor":"c","const":9}}}`:                                                                     "9",
		`{"type":"string","maxLength":0,"nullable":true,"not":{"const":""}}`:                                                                                                "null",
		`{"type":["integer","string"],"nullable":true,"not":{"type":["string","integer"]}}`:                                                                                 "null",
		`{"$schema":"https://json-schema.org/draft/2020-12/schema","type":["null","string"],"nullable":true,"maxLength":0,"not":{"type":"null"}}`:                           `""`,
	} {
		g, err := FromSchema([]byte(text))
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got, cut := answer(t, g.Matcher(v), r, 60); cut || got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
		if !json.Valid([]byte(text)) {
			t.Error(text)
		}
	}
	for _, text := range []string{`{"$ref":"other.json","$defs":{"a":{"$id":"item.json"}}}`,
		`{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"string","nullable":true,"not":{"type":"string"}}`,
		`{"$ref":"item.json#/nowhere","$defs":{"a":{"$id":"item.json"}}}`} {
		if _, err := FromSchema([]byte(text)); err == nil || !strings.HasPrefix(err.Error(), "#") {
			t.Errorf("%s: %v", text, err)
		}
	}
}
