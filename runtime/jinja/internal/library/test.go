package library

import (
	"strings"
	"unicode"

	"sandwich/runtime/jinja/internal/object"
)

type testFunc func(r *Run, v any, a *Arguments) bool

// tests is set by init, because two tests look up others.
var tests map[string]testFunc

func init() {
	tests = map[string]testFunc{
		"defined":   func(_ *Run, v any, _ *Arguments) bool { return !isA[object.Undefined](v) },
		"undefined": func(_ *Run, v any, _ *Arguments) bool { return isA[object.Undefined](v) },
		"none":      func(_ *Run, v any, _ *Arguments) bool { return v == nil },
		"boolean":   func(_ *Run, v any, _ *Arguments) bool { return isA[bool](v) },
		"true":      func(_ *Run, v any, _ *Arguments) bool { return v == true },
		"false":     func(_ *Run, v any, _ *Arguments) bool { return v == false },
		"integer":   func(_ *Run, v any, _ *Arguments) bool { return isA[int](v) || isA[object.BigInt](v) },
		"float":     func(_ *Run, v any, _ *Arguments) bool { return isA[float64](v) },
		"number":    func(_ *Run, v any, _ *Arguments) bool { return object.Number(v) != nil },
		"string":    func(_ *Run, v any, _ *Arguments) bool { return object.IsText(v) },
		"mapping":   func(_ *Run, v any, _ *Arguments) bool { return isA[*object.Dict](v) },
		"sequence":  func(_ *Run, v any, _ *Arguments) bool { return isSequence(v) },
		"iterable": func(_ *Run, v any,
			_ *Arguments) bool {
			return isSequence(v) || isA[*object.List](v) || isA[interface{ Elements() []any }](v)
		},
		"callable":    func(_ *Run, v any, _ *Arguments) bool { return isA[Callable](v) },
		"sameas":      testSame,
		"in":          func(r *Run, v any, a *Arguments) bool { return r.Contains(a.need(0, "seq"), v) },
		"odd":         func(_ *Run, v any, a *Arguments) bool { return remainder(v, 2) == 1 },
		"even":        func(_ *Run, v any, a *Arguments) bool { return remainder(v, 2) == 0 },
		"divisibleby": func(_ *Run, v any, a *Arguments) bool { return remainder(v, a.need(0, "num")) == 0 },
		"lower":       func(r *Run, v any, _ *Arguments) bool { return r.cased(v, unicode.IsUpper, unicode.IsLower) },
		"upper":       func(r *Run, v any, _ *Arguments) bool { return r.cased(v, unicode.IsLower, unicode.IsUpper) },
		"filter":      func(_ *Run, v any, _ *Arguments) bool { s, _ := object.Plain(v); return filters[s] != nil },
		"test":        func(_ *Run, v any, _ *Arguments) bool { s, _ := object.Plain(v); return tests[s] != nil },
	}
	for op, names := range map[string]string{"==": "eq equalto", "!=": "ne", "<": "lt lessthan", "<=": "le",
		">": "gt greaterthan", ">=": "ge"} {
		for name := range strings.FieldsSeq(names + " " + op) {
			tests[name] = func(r *Run, v any, a *Arguments) bool { return r.Compare(op, v, a.need(0, "other")) }
		}
	}
}

// Test applies the test with the given name.
func (r *Run) Test(name string, v any, a *Arguments) bool {
	t, ok := tests[name]
	if !ok {
		object.Fail("unknown test %s", object.Clip(name, 40))
	}
	a.Who = name
	r.Spend(1)
	return t(r, v, a)
}

func isA[T any](v any) bool {
	_, ok := v.(T)
	return ok
}

// isSequence reports whether v is a sequence. Undefined values are empty sequences, as in Python.
func isSequence(v any) bool {
	switch v := v.(type) {
	case string, *object.Text, *object.Dict, object.Undefined:
		return true
	case *object.List:
		return !v.Generator
	}
	return false
}

func testSame(r *Run, v any, a *Arguments) bool {
	other := a.need(0, "other")
	switch v.(type) {
	case nil, bool:
		return v == other
	case *object.List, *object.Dict:
		return v == other
	}
	return object.TypeName(v) == object.TypeName(other) && r.Equal(v, other)
}

func remainder(v, by any) int {
	object.Strict(v)
	a, ok := object.Number(v).(int)
	b, both := object.Number(by).(int)
	if !ok || !both {
		object.Fail("odd, even and divisibleby need integers")
	}
	return object.Integers("%", a, b).(int)
}
