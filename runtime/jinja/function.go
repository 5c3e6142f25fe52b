package jinja

import (
	"strings"
)

// function is a callable implemented in Go.
type function func(r *run, a *arguments) any

func (f function) call(r *run, a *arguments) any { return f(r, a) }

// globals are the functions available to every template.
var globals = map[string]any{
	"range":           function(makeRange),
	"dict":            function(makeDict),
	"namespace":       function(func(r *run, a *arguments) any { return &namespace{*makeDict(r, a).(*Dict)} }),
	"joiner":          function(makeJoiner),
	"cycler":          function(makeCycler),
	"raise_exception": function(raiseException),
	"strftime_now":    function(strftimeNow),
}

const maxRaised = 300 // limit of raise_exception's message in bytes

func raiseException(r *run, a *arguments) any {
	text := r.str(a.need(0, "message"))
	panic(failure{&RaisedError{strings.Join(strings.Fields(clip(text, maxRaised)), " ")}})
}

func makeRange(r *run, a *arguments) any {
	from, to, step := 0, a.integer(0, "stop", 0), a.integer(2, "step", 1)
	a.need(0, "stop")
	if len(a.positional) > 1 {
		from, to = to, a.integer(1, "stop", 0)
	}
	n := 0
	switch {
	case step == 0:
		fail("the step of range cannot be 0")
	case step > 0 && to > from:
		n = int((uint(to)-uint(from)-1)/uint(step)) + 1
	case step < 0 && from > to:
		n = int((uint(from)-uint(to)-1)/-uint(step)) + 1
	}
	r.items(n)
	r.take(max(0, n) * 8) // each element refers to an integer on the heap
	items := make([]any, n)
	for i := range items {
		items[i] = from + i*step
	}
	return &List{items: items}
}

// makeDict implements dict(mapping, name=value, ...).
func makeDict(r *run, a *arguments) any {
	d := &Dict{}
	if len(a.positional) > 0 {
		update(r, d, a.positional[0])
	}
	for _, n := range a.named {
		r.put(d, n.name, n.value)
	}
	return d
}

// update copies the entries of a mapping, or of a sequence of pairs, to d.
func update(r *run, d *Dict, from any) {
	if other, ok := from.(*Dict); ok {
		for _, e := range other.entries {
			r.put(d, e.key, e.value)
		}
		return
	}
	for _, item := range r.iterate(from) {
		pair := r.iterate(item)
		if len(pair) != 2 {
			fail("dict needs a mapping or pairs")
		}
		r.put(d, pair[0], pair[1])
	}
}

// makeJoiner returns a function that returns an empty string at its first call and the separator
// afterwards.
func makeJoiner(_ *run, a *arguments) any {
	between, used := any(", "), false
	if v, ok := a.value(0, "sep"); ok {
		between = v
	}
	return function(func(*run, *arguments) any {
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

func makeCycler(_ *run, a *arguments) any {
	if len(a.positional) == 0 {
		fail("cycler needs at least one value")
	}
	return &cycler{items: a.positional}
}

func (c *cycler) attribute(name string) any {
	switch name {
	case "current":
		return c.items[c.at]
	case "next":
		return function(func(*run, *arguments) any {
			v := c.items[c.at]
			c.at = (c.at + 1) % len(c.items)
			return v
		})
	case "reset":
		return function(func(*run, *arguments) any { c.at = 0; return nil })
	}
	return undefined("a cycler has no attribute '" + name + "'")
}
