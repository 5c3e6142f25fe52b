package grammar

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"sandwich/runtime/grammar/internal/automaton"
)

// compiled compiles a schema, or a grammar in GBNF where the text begins with a rule.
func (m *Meter) compiled(text string) (*Grammar, error) {
	if strings.HasPrefix(text, "root") {
		return m.FromGBNF(text, nil)
	}
	return m.FromSchema([]byte(text))
}

// smallBodies are texts of a few hundred bytes that ask for large automata.
var smallBodies = []string{
	`{"type":"integer","multipleOf":4093,"minimum":-123456789012345,"maximum":987654321012345}`,
	`{"properties":{` + numbered(6, `"p#":{"type":"integer","multipleOf":409#,"maximum":987654321012345}`) + `}}`,
	`{"properties":{` + numbered(6, `"p#":{"type":"number","multipleOf":0.00000000000025#,"minimum":0.123}`) + `}}`,
	`{"type":"string","pattern":"(a?){400}a{400}","minLength":700,"maxLength":900}`,
	`{"type":"string","pattern":"^(\\p{L}a?){1000}$"}`,
	`{"type":"string","pattern":"((.|x){1,30}y?){1,30}z","maxLength":3000}`,
	`{"allOf":[{"type":"string","pattern":"(a|b)*a(a|b){14}c"},{"pattern":"b(a|b){15}c"}]}`,
	`{"allOf":[{"type":"string","pattern":"\\p{L}\\p{N}{1,30}\\p{Lu}"},{"pattern":"\\p{Ll}.{12}\\p{N}"}]}`,
	`{"type":"string","pattern":"^(?=.*[a-z]{3})(?=.*[A-Z].{5}x)(?=.*\\d.{6}y)(?!.*foo).{8,64}$"}`,
	`{"type":"string","pattern":"^(?:(?!ab.{9}c).){1,200}$"}`,
	`{"type":"object","patternProperties":{` + numbered(8, `"a.{#}b":{"type":"integer"}`) + `}}`,
	`{"type":"array","uniqueItems":true,"items":{"type":"integer"},"minItems":64}`,
	`{"oneOf":[` + numbered(8, `{"type":"string","pattern":"x.{#}y"}`) + `]}`,
	`{"allOf":[` + numbered(10, `{"anyOf":[{"title":"#"},{"minimum":1},{"maxLength":2}]}`) + `]}`,
	`{"type":"string","format":"uri","pattern":"[0-9]{3}.*[a-f]{5}","maxLength":200}`,
	`root ::= ((("a"?){0,64}){0,64}){0,64} "b"`,
	`root ::= (([a-z]{1,1000} | [a-y]{1,999}){1,1000} | ([b-z]{1,1000} "q"?){1,1000}){1,1000} "1"`,
	`root ::= (` + strings.ReplaceAll(numbered(10, `[^a#\n]{1,1000}`), ",", "|") + `){1,1000} "x"`,
}

// TestSmallBodies checks that no small body takes more than the limits of a compilation, and that
// one that is refused for them says so.
func TestSmallBodies(t *testing.T) {
	for _, text := range smallBodies {
		m := NewMeter(t.Context(), Limits{})
		_, err := m.compiled(text)
		if m.Peak > automaton.DefaultBytes*3/2 || m.Done > automaton.DefaultWork*3/2 {
			t.Errorf("%.80s: %d bytes and %d steps", text, m.Peak, m.Done)
		}
		var e *automaton.Error
		if !errors.As(err, &e) {
			continue
		}
		if over := m.Peak > automaton.DefaultBytes || m.Done > automaton.DefaultWork; over != e.Limited() {
			t.Errorf("%.80s: %d bytes, %d steps, limited %v: %v", text, m.Peak, m.Done, e.Limited(), err)
		}
	}
}

// TestCheapBodies checks that counts and alternatives that need no large automata get none.
func TestCheapBodies(t *testing.T) {
	const bound = 1 << 20
	props := numbered(10, `"p#":{"type":"string","maxLength":1000}`)
	for _, text := range []string{
		`{"type":"object","properties":{` + props + `},"maxProperties":1480}`,
		`{"type":"object","patternProperties":{"^[a-z]{1,200}$":{}},"additionalProperties":false,"maxProperties":16000}`,
		`{"type":"object","patternProperties":{"^\\p{L}{1,20}$":{}},"additionalProperties":false,"maxProperties":8000}`,
		`{"type":"object","minProperties":6,"propertyNames":{"pattern":"^\\p{L}+[a-z]{1,50}$"}}`,
		`{"type":"array","items":{"type":"array","items":{"type":"string","pattern":"^\\p{L}{1,50}$"},"minItems":1000},` +
			`"minItems":1000,"maxItems":2000}`,
		`{"type":"object","properties":{` + numbered(40, `"a_property_with_a_name_#":{"type":"string"}`) + `}}`,
		`{"anyOf":[` + numbered(9, `{"type":"string","pattern":"^\\p{L}{1,300}#$"}`) + `]}`,
		"root ::= " + strings.Repeat("(", 12) + `"ab"` + strings.Repeat("){4,}", 12),
		"root ::= " + strings.Repeat("(", 9) + `[^a]` + strings.Repeat("){4,}", 9),
		"root ::= " + strings.Repeat("(", 20) + `"ab"` + strings.Repeat("){2,}", 20),
		"root ::= " + strings.Repeat(`"" | `, 20_000) + `"a"`,
	} {
		m := NewMeter(t.Context(), Limits{})
		if _, err := m.compiled(text); err != nil {
			t.Errorf("%.80s: %v", text, err)
		} else if limit := int64(bound + 128*len(text)); m.Peak > limit {
			t.Errorf("%.80s takes %d bytes, want at most %d", text, m.Peak, limit)
		}
	}
}

// TestLimitsByPath checks that an exceeded limit is named with its path.
func TestLimitsByPath(t *testing.T) {
	m := NewMeter(t.Context(), Limits{Bytes: 128 << 10})
	_, err := m.FromSchema([]byte(`{"properties":{"a":{"type":"null"},"b":{"type":"integer","multipleOf":997}}}`))
	var e *automaton.Error
	if !errors.As(err, &e) || !e.Limited() || e.Path != "#/properties/b" ||
		!strings.Contains(e.Message, "the limit of 128 KiB") {
		t.Errorf("%v", err)
	}
	m = NewMeter(t.Context(), Limits{Work: 1 << 20})
	_, err = m.FromSchema([]byte(smallBodies[7]))
	if !errors.As(err, &e) || !e.Limited() || !strings.Contains(e.Message, "the limit of 1 million steps") {
		t.Errorf("%v", err)
	}
	if _, err := m.FromSchema([]byte(`{"type":"null"}`)); !errors.As(err, &e) || !e.Limited() {
		t.Errorf("compilations with one Meter do not share its work: %v", err)
	}
}

// endsLate is a context that ends when it was asked so many times whether it did.
type endsLate struct {
	context.Context
	left int
}

func (c *endsLate) Err() error {
	if c.left--; c.left < 0 {
		return context.Canceled
	}
	return nil
}

// TestCompilationIsCanceled checks that a compilation ends soon after its context does, wherever it
// is.
func TestCompilationIsCanceled(t *testing.T) {
	for _, text := range smallBodies {
		whole := NewMeter(t.Context(), Limits{})
		_, _ = whole.compiled(text)
		for _, looks := range []int{0, 1, 3, 10} {
			m := NewMeter(&endsLate{t.Context(), looks}, Limits{})
			_, err := m.compiled(text)
			due := int64(looks+1) * automaton.PollWork
			if whole.Done <= due {
				continue
			}
			var e *automaton.Error
			if !errors.Is(err, context.Canceled) || !errors.As(err, &e) || e.Limited() {
				t.Errorf("%.80s after %d looks: %v", text, looks, err)
			}
			if m.Done > due+automaton.DefaultWork/16 {
				t.Errorf("%.80s after %d looks: %d steps, due after %d", text, looks, m.Done, due)
			}
		}
	}
}

// randomGBNF returns a grammar of nested repetitions, alternatives and rules that call each other.
func randomGBNF(r *rand.Rand) string {
	var element func(depth int) string
	element = func(depth int) string {
		switch n := r.IntN(9); {
		case depth == 0 || n == 0:
			return []string{`"ab"`, `""`, "[a-z]", "[^x]", ".", `"é"`}[r.IntN(6)]
		case n < 3:
			return element(depth-1) + " " + element(depth-1)
		case n < 5:
			return "(" + element(depth-1) + " | " + element(depth-1) + ")"
		case n == 5:
			return fmt.Sprintf("r%d", r.IntN(3))
		}
		count := []string{"*", "+", "?", "{3,}", "{4,}", "{0,64}", "{1,1000}", "{40}"}[r.IntN(8)]
		return "(" + element(depth-1) + ")" + count
	}
	text := "root ::= " + element(5) + "\n"
	for i := range 3 {
		text += fmt.Sprintf("r%d ::= \"(\" %s\n", i, element(4))
	}
	return text
}

// TestMeterHolds compiles random schemas and grammars under small limits, and follows answers under
// those that are taken: nothing takes more than its limits by a small factor.
func TestMeterHolds(t *testing.T) {
	limits := Limits{Bytes: 192 << 10, Work: 1 << 17}
	v := testVocab(600, 8)
	taken, limited := 0, 0
	for seed := range uint64(600) {
		r := rand.New(rand.NewPCG(seed, 44))
		text := randomGBNF(r)
		if seed%2 == 0 {
			b, err := json.Marshal(schemaMaker{r, 2}.root())
			if err != nil {
				t.Fatal(err)
			}
			text = string(b)
		}
		m := NewMeter(t.Context(), limits)
		g, err := m.compiled(text)
		if m.Peak > 2*limits.Bytes || m.Done > 2*limits.Work {
			t.Errorf("seed %d: %d bytes of %d, %d steps of %d", seed, m.Peak, limits.Bytes, m.Done, limits.Work)
		}
		if err != nil {
			var e *automaton.Error
			if errors.As(err, &e) && e.Limited() {
				limited++
			}
			continue
		}
		taken++
		drawUnder(t, g.Matcher(v), r, seed)
	}
	if taken < 100 || limited < 30 {
		t.Errorf("%d are taken and %d limited: the test tests little", taken, limited)
	}
}

// drawUnder draws an answer and checks what each of its masks takes.
func drawUnder(t *testing.T, m *Matcher, r *rand.Rand, seed uint64) {
	t.Helper()
	defer m.End()
	const limit = burstWork + 3*maskWork
	for range 24 {
		if m.MustEnd() {
			return
		}
		before := m.m.work
		mask := m.Mask(1 << 20)
		if took := m.m.work - before; took > limit {
			t.Errorf("seed %d: a mask looks at %d stacks, want at most %d", seed, took, limit)
		}
		if m.m.bytes > stateBytes*5/4 {
			t.Errorf("seed %d: states take %d bytes", seed, m.m.bytes)
		}
		if mask.Count() == 0 {
			t.Fatalf("seed %d: nothing may follow", seed)
		}
		var ids []int32
		for id := range int32(m.v.size) {
			if mask.Has(id) && !m.v.Ends(id) {
				ids = append(ids, id)
			}
		}
		if ids == nil {
			return
		}
		if err := m.Accept(ids[r.IntN(len(ids))]); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}

// TestHostileMasks checks that masks of ambiguous grammars stay within their work, and that answers
// under them go on.
func TestHostileMasks(t *testing.T) {
	v := testVocab(3000, 8)
	for i, text := range smallBodies {
		if g, err := NewMeter(t.Context(), Limits{}).compiled(text); err == nil {
			drawUnder(t, g.Matcher(v), rand.New(rand.NewPCG(1, 2)), uint64(i))
		}
	}
}
