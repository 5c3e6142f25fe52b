package library

import "sandwich/runtime/jinja/internal/object"

// Arguments are the positional and named arguments of a call to a filter, test, method, function or
// macro.
type Arguments struct {
	Who        string // name of the called function, for errors
	Meter      *object.Meter
	Positional []any
	Named      []NamedValue
}

// NamedValue is a named argument or a variable.
type NamedValue struct {
	Name  string
	Value any
}

// Value returns the argument at position i or with the given name, and whether it was given.
func (a *Arguments) Value(i int, name string) (any, bool) {
	if i >= 0 && i < len(a.Positional) {
		return a.Positional[i], true
	}
	for _, n := range a.Named {
		a.Meter.Spend(1)
		if n.Name == name {
			return n.Value, true
		}
	}
	return nil, false
}

// need returns an argument and fails if it was not given.
func (a *Arguments) need(i int, name string) any {
	v, ok := a.Value(i, name)
	if !ok {
		object.Fail("%s needs the argument %s", a.Who, name)
	}
	return v
}

// text returns a string argument without its origins. It returns otherwise if the argument is
// missing or None.
func (a *Arguments) text(i int, name, otherwise string) string {
	v, ok := a.Value(i, name)
	if !ok || v == nil {
		return otherwise
	}
	s, ok := object.Plain(v)
	if !ok {
		object.Strict(v)
		object.Fail("%s needs a string as argument %s", a.Who, name)
	}
	return s
}

func (a *Arguments) integer(i int, name string, otherwise int) int {
	v, ok := a.Value(i, name)
	if !ok || v == nil {
		return otherwise
	}
	n, ok := object.Number(v).(int)
	if !ok {
		object.Strict(v)
		object.Fail("%s needs an integer as argument %s", a.Who, name)
	}
	return n
}

// positive returns an integer argument, which is needed and must be at least 1.
func (a *Arguments) positive(i int, name string) int {
	a.need(i, name)
	n := a.integer(i, name, 0)
	if n < 1 {
		object.Fail("%s needs at least 1 as argument %s", a.Who, name)
	}
	return n
}

func (a *Arguments) flag(i int, name string, otherwise bool) bool {
	if v, ok := a.Value(i, name); ok {
		return object.Truth(v)
	}
	return otherwise
}

// after returns the positional arguments starting at position i, and all named ones.
func (a *Arguments) after(i int) *Arguments {
	rest := *a
	rest.Positional = a.Positional[min(i, len(a.Positional)):]
	return &rest
}

// filterFunc applies a filter to a value.
type filterFunc func(r *Run, in any, a *Arguments) any
