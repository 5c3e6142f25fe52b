package library

import (
	"strings"

	"sandwich/runtime/jinja/internal/object"
)

// Callable is a value that a template can call. The caller of call limits the depth of calls.
type Callable interface {
	Call(r *Run, a *Arguments) any
}

// Function is a callable implemented in Go.
type Function func(r *Run, a *Arguments) any

// Call runs the function.
func (f Function) Call(r *Run, a *Arguments) any { return f(r, a) }

// Opaque marks functions as values that cannot be compared.
func (f Function) Opaque() {}

// Globals are the functions available to every template.
var Globals = map[string]any{
	"range": Function(makeRange),
	"dict":  Function(makeDict),
	"namespace": Function(func(r *Run, a *Arguments) any {
		return &object.Namespace{Dict: *makeDict(r,
			a).(*object.Dict)}
	}),
	"joiner":          Function(makeJoiner),
	"cycler":          Function(makeCycler),
	"raise_exception": Function(raiseException),
	"strftime_now":    Function(strftimeNow),
}

const maxRaised = 300 // limit of raise_exception's message in bytes

func raiseException(r *Run, a *Arguments) any {
	text := r.Str(a.need(0, "message"))
	panic(object.Failure{Err: &object.RaisedError{Message: strings.Join(strings.Fields(object.Clip(text, maxRaised)),
		" ")}})
}

func makeRange(r *Run, a *Arguments) any {
	from, to, step := 0, a.integer(0, "stop", 0), a.integer(2, "step", 1)
	a.need(0, "stop")
	if len(a.Positional) > 1 {
		from, to = to, a.integer(1, "stop", 0)
	}
	n := 0
	switch {
	case step == 0:
		object.Fail("the step of range cannot be 0")
	case step > 0 && to > from:
		n = int((uint(to)-uint(from)-1)/uint(step)) + 1
	case step < 0 && from > to:
		n = int((uint(from)-uint(to)-1)/-uint(step)) + 1
	}
	r.Items(n)
	r.Take(max(0, n) * 8) // each element refers to an integer on the heap
	items := make([]any, n)
	for i := range items {
		items[i] = from + i*step
	}
	return &object.List{Items: items}
}

// makeDict implements dict(mapping, name=value, ...).
func makeDict(r *Run, a *Arguments) any {
	d := &object.Dict{}
	if len(a.Positional) > 0 {
		update(r, d, a.Positional[0])
	}
	for _, n := range a.Named {
		r.Put(d, n.Name, n.Value)
	}
	return d
}

// update copies the entries of a mapping, or of a sequence of pairs, to d.
func update(r *Run, d *object.Dict, from any) {
	if other, ok := from.(*object.Dict); ok {
		for _, e := range other.Entries {
			r.Put(d, e.Key, e.Value)
		}
		return
	}
	for _, item := range r.Iterate(from) {
		pair := r.Iterate(item)
		if len(pair) != 2 {
			object.Fail("dict needs a mapping or pairs")
		}
		r.Put(d, pair[0], pair[1])
	}
}

// makeJoiner returns a function that returns an empty string at its first call and the separator
// afterwards.
func makeJoiner(_ *Run, a *Arguments) any {
	between, used := any(", "), false
	if v, ok := a.Value(0, "sep"); ok {
		between = v
	}
	return Function(func(*Run, *Arguments) any {
		if !used {
			used = true
			return ""
		}
		return between
	})
}

// cycler returns its values cyclically.
type cycler struct {
	items []any
	at    int
}

func makeCycler(_ *Run, a *Arguments) any {
	if len(a.Positional) == 0 {
		object.Fail("cycler needs at least one value")
	}
	return &cycler{items: a.Positional}
}

func (c *cycler) attribute(name string) any {
	switch name {
	case "current":
		return c.items[c.at]
	case "next":
		return Function(func(*Run, *Arguments) any {
			v := c.items[c.at]
			c.at = (c.at + 1) % len(c.items)
			return v
		})
	case "reset":
		return Function(func(*Run, *Arguments) any { c.at = 0; return nil })
	}
	return object.Undefined("a cycler has no attribute '" + name + "'")
}
