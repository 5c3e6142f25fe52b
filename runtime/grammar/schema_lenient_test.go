package grammar

import (
	"encoding/json"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"sandwich/runtime/grammar/internal/automaton"
	"sandwich/runtime/grammar/internal/schema"
)

// spoiled puts keywords that are not supported, or are no keywords' values, into a random schema.
func spoiled(r *rand.Rand, v any) any {
	switch v := v.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			v[name] = spoiled(r, v[name])
		}
		if r.IntN(6) == 0 {
			name := []string{"pattern", "type", "multipleOf", "$ref", "items", "properties", "required", "oneOf",
				"minItems", "patternProperties", "allOf", "enum"}[r.IntN(12)]
			v[name] = []any{`(a)\1`, "strin", 0.2570001, "http://example.com/x", 7, []any{1},
				map[string]any{"(": true}, nil,
				-1, "#/nowhere"}[r.IntN(10)]
		}
	case []any:
		for i := range v {
			v[i] = spoiled(r, v[i])
		}
	}
	return v
}

// TestLenientSchemas checks that a lenient schema compiles without its faulty keywords and with a
// warning for each, and that nothing is left out of a schema that is supported.
func TestLenientSchemas(t *testing.T) {
	v := testVocab(600, 5)
	relaxed, whole := 0, 0
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, 45))
		root := schemaMaker{r, 2}.root()
		if seed%4 > 0 {
			root = spoiled(r, root)
		}
		text, err := json.Marshal(root)
		if err != nil {
			t.Fatal(err)
		}
		var paths []string
		s := schema.NewSchema(text, func(path, reason string) {
			paths = append(paths, path)
			if !strings.HasPrefix(path, "#") || strings.HasPrefix(path, "#!") || reason == "" {
				t.Errorf("seed %d: %q is not enforced: %q", seed, path, reason)
			}
		})
		g, err := NewMeter(t.Context(), Limits{}).Compose(s.Matching(""))
		var e *automaton.Error
		if errors.As(err, &e) && e.Limited() {
			continue
		}
		if err != nil {
			t.Errorf("seed %d: %s: %v after %v", seed, text, err, paths)
			continue
		}
		if _, cut := answer(t, g.Matcher(v), r, g.Matcher(v).Needs()+40); cut {
			t.Errorf("seed %d: an answer has no end", seed)
		}
		if _, err := FromSchema(text); (err == nil) != (paths == nil) {
			t.Errorf("seed %d: %s: refused %v, left out %q", seed, text, err, paths)
		}
		if relaxed++; paths == nil {
			relaxed--
			whole++
		}
	}
	t.Logf("%d schemas are relaxed, %d are whole", relaxed, whole)
	if relaxed < 100 || whole < 20 {
		t.Error("the test tests little")
	}
}
