package jinja

import (
	"strings"
	"unicode"
)

type testFunc func(r *run, v any, a *arguments) bool

// tests is set by init, because two tests look up others.
var tests map[string]testFunc

func init() {
	tests = map[string]testFunc{
		"defined":     func(_ *run, v any, _ *arguments) bool { return !isA[undefined](v) },
		"undefined":   func(_ *run, v any, _ *arguments) bool { return isA[undefined](v) },
		"none":        func(_ *run, v any, _ *arguments) bool { return v == nil },
		"boolean":     func(_ *run, v any, _ *arguments) bool { return isA[bool](v) },
		"true":        func(_ *run, v any, _ *arguments) bool { return v == true },
		"false":       func(_ *run, v any, _ *arguments) bool { return v == false },
		"integer":     func(_ *run, v any, _ *arguments) bool { return isA[int](v) },
		"float":       func(_ *run, v any, _ *arguments) bool { return isA[float64](v) },
		"number":      func(_ *run, v any, _ *arguments) bool { return number(v) != nil },
		"string":      func(_ *run, v any, _ *arguments) bool { return isText(v) },
		"mapping":     func(_ *run, v any, _ *arguments) bool { return isA[*Dict](v) },
		"sequence":    func(_ *run, v any, _ *arguments) bool { return isSequence(v) },
		"iterable":    func(_ *run, v any, _ *arguments) bool { return isSequence(v) || isA[*loop](v) },
		"callable":    func(_ *run, v any, _ *arguments) bool { return isA[callable](v) },
		"sameas":      testSame,
		"in":          func(r *run, v any, a *arguments) bool { return r.contains(a.need(0, "seq"), v) },
		"odd":         func(_ *run, v any, a *arguments) bool { return remainder(v, 2) == 1 },
		"even":        func(_ *run, v any, a *arguments) bool { return remainder(v, 2) == 0 },
		"divisibleby": func(_ *run, v any, a *arguments) bool { return remainder(v, a.need(0, "num")) == 0 },
		"lower":       func(r *run, v any, _ *arguments) bool { return r.cased(v, unicode.IsUpper, unicode.IsLower) },
		"upper":       func(r *run, v any, _ *arguments) bool { return r.cased(v, unicode.IsLower, unicode.IsUpper) },
		"filter":      func(_ *run, v any, _ *arguments) bool { s, _ := plain(v); return filters[s] != nil },
		"test":        func(_ *run, v any, _ *arguments) bool { s, _ := plain(v); return tests[s] != nil },
	}
	for op, names := range map[string]string{"==": "eq equalto", "!=": "ne", "<": "lt lessthan", "<=": "le",
		">": "gt greaterthan", ">=": "ge"} {
		for name := range strings.FieldsSeq(names + " " + op) {
			tests[name] = func(r *run, v any, a *arguments) bool { return r.compare(op, v, a.need(0, "other")) }
		}
	}
}

// test applies the test with the given name.
func (r *run) test(name string, v any, a *arguments) bool {
	t, ok := tests[name]
	if !ok {
		fail("unknown test %s", clip(name, 40))
	}
	a.who = name
	r.spend(1)
	return t(r, v, a)
}

func isA[T any](v any) bool {
	_, ok := v.(T)
	return ok
}

func isText(v any) bool {
	_, ok := plain(v)
	return ok
}

// isSequence reports whether v is a sequence. Undefined values are empty sequences, as in Python.
func isSequence(v any) bool {
	switch v.(type) {
	case string, *Text, *List, *Dict, undefined:
		return true
	}
	return false
}

func testSame(r *run, v any, a *arguments) bool {
	other := a.need(0, "other")
	switch v.(type) {
	case nil, bool:
		return v == other
	case *List, *Dict:
		return v == other
	}
	return typeName(v) == typeName(other) && r.equal(v, other)
}

func remainder(v, by any) int {
	strict(v)
	a, ok := number(v).(int)
	b, both := number(by).(int)
	if !ok || !both {
		fail("odd, even and divisibleby need integers")
	}
	return integers("%", a, b).(int)
}

// cased implements Python's islower and isupper: v has letters of one case and none of the other.
func (r *run) cased(v any, not, is func(rune) bool) bool {
	s := r.str(v)
	r.scan(len(s))
	return strings.IndexFunc(s, not) < 0 && strings.IndexFunc(s, is) >= 0
}
