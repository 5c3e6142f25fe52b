package grammar

import (
	"encoding/json"
	"math/rand/v2"
	"testing"

	"sandwich/runtime/grammar/internal/automaton"
)

// drawnValid draws answers under a schema and has the checker judge them; false where it is
// refused.
func drawnValid(t *testing.T, v *Vocab, r *rand.Rand, schema any, n int) bool {
	t.Helper()
	text, err := json.Marshal(schema)
	if err != nil {
		t.Fatal(err)
	}
	g, err := FromSchema(text)
	if err != nil {
		if e, ok := err.(*automaton.Error); !ok || e.Path == "" {
			t.Errorf("%s: refused without a path: %v", text, err)
		}
		return false
	}
	root := decode(t, string(text))
	for i := range n {
		m := g.Matcher(v)
		got, cut := answer(t, m, r, m.Needs()+1+[]int{0, 9, 40, 90}[i%4])
		if !cut && !(checker{root}).valid(root, decode(t, got)) {
			t.Errorf("%s\nallows %s", text, got)
			return true
		}
	}
	return true
}

// What other keywords say nothing of is as unevaluatedProperties says; generated schemas.
func TestUnevaluatedProperties(t *testing.T) {
	manyTaken(t, testVocab(1500, 5), 41, 120, 40, func(r schemaMaker) object {
		plain := func() object {
			name := r.name()
			s := object{"type": "object", "properties": object{name: r.leaf(), r.name(): r.leaf()}}
			if r.chance(25) {
				s["required"] = []any{name}
			}
			if r.chance(20) {
				s["patternProperties"] = object{"^a": r.leaf()}
			}
			if r.chance(15) {
				s["unevaluatedProperties"] = r.pick(false, true, object{"type": "integer"})
			}
			return s
		}
		s := plain()
		s["$defs"] = object{"d": plain()}
		s["$dynamicAnchor"] = "top"
		if r.chance(60) {
			s["$ref"] = "#/$defs/d"
		}
		if r.chance(60) {
			s["allOf"] = []any{plain(), plain()}
		}
		switch r.IntN(5) {
		case 0:
			s["anyOf"] = []any{plain(), plain()}
		case 1:
			s["not"] = plain()
		case 2:
			s["if"], s["then"] = plain(), plain()
		case 3:
			s["dependentRequired"] = object{"a": []any{"ab"}}
		}
		s["unevaluatedProperties"] = r.pick(false, false, object{"$dynamicRef": "#top"}, object{"type": "null"})
		return s
	})
}

// The same for items.
func TestUnevaluatedItems(t *testing.T) {
	manyTaken(t, testVocab(1500, 5), 44, 60, 30, func(r schemaMaker) object {
		plain := func() object {
			s := object{"type": "array"}
			if r.chance(60) {
				s["prefixItems"] = r.list(1+r.IntN(2), 0)
			}
			if r.chance(10) {
				s["items"] = r.leaf()
			}
			if r.chance(15) {
				s["unevaluatedItems"] = r.pick(false, true, object{"type": "integer"})
			}
			return s
		}
		s := plain()
		s["$defs"] = object{"d": plain()}
		if r.chance(50) {
			s["$ref"] = "#/$defs/d"
		}
		if r.chance(50) {
			s["allOf"] = []any{plain(), plain()}
		}
		if r.chance(20) {
			s["anyOf"] = []any{plain(), plain()}
		}
		s["unevaluatedItems"] = r.pick(false, false, object{"type": "boolean"})
		return s
	})
}

// TestDistinctContained checks distinct constants together with contains.
func TestDistinctContained(t *testing.T) {
	manyTaken(t, testVocab(800, 6), 42, 60, 25, func(r schemaMaker) object {
		s := object{"type": "array", "uniqueItems": true, "items": r.pick(
			object{"enum": []any{"a", "b", 1, nil, "cc", 7}}, object{"enum": []any{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}},
			object{"type": "string", "maxLength": 2},
			object{"enum": []any{1, 5}, "anyOf": []any{object{"maximum": 3}}}),
			"contains": r.pick(object{"type": "string"}, object{"minimum": 5}, object{"enum": []any{"b", 2, 7}},
				object{"pattern": "^[ab]"}, true, false, object{"const": 1})}
		if r.chance(50) {
			s["minContains"] = r.IntN(3)
		}
		if r.chance(40) {
			s["maxContains"] = r.IntN(3)
		}
		if r.chance(40) {
			s["maxItems"] = 1 + r.IntN(4)
		}
		return s
	})
}

// References by name, as meta-schemas have them, and what cannot be decided.
func TestDynamicReferences(t *testing.T) {
	v, r := testVocab(800, 6), rand.New(rand.NewPCG(1, 43))
	tree := object{"$dynamicAnchor": "node", "type": "object", "properties": object{"v": object{"type": "integer"},
		"kids": object{"type": "array", "items": object{"$dynamicRef": "#node"}}}, "unevaluatedProperties": false,
		"required": []any{"kids"}}
	if !drawnValid(t, v, r, tree, 20) {
		t.Error("a tree by $dynamicRef is refused")
	}
	for _, text := range []string{
		`{"$dynamicAnchor":"a","items":{"$dynamicRef":"#a"},"$defs":{"b":{"$dynamicAnchor":"a"}}}`,
		`{"items":{"$dynamicRef":"#none"}}`, `{"items":{"$recursiveRef":"#"},"$defs":{"b":{"$id":"x"}}}`} {
		if _, err := FromSchema([]byte(text)); err == nil {
			t.Errorf("%s is taken", text)
		}
	}
}

// manyTaken draws schemas from a stream of random numbers. All finished answers under them are
// valid, and at least so many of them are not refused.
func manyTaken(t *testing.T, v *Vocab, stream uint64, drawn, minimum int, schema func(r schemaMaker) object) {
	t.Helper()
	taken := 0
	for seed := range uint64(drawn) {
		r := schemaMaker{rand.New(rand.NewPCG(seed, stream)), 1}
		if drawnValid(t, v, r.Rand, schema(r), 8) {
			taken++
		}
	}
	if t.Logf("%d of %d taken", taken, drawn); taken < minimum {
		t.Errorf("%d of %d schemas taken", taken, drawn)
	}
}
