package jinja

import (
	"sandwich/runtime/jinja/internal/object"

	"sandwich/runtime/jinja/internal/library"
)

type forBlock struct {
	line      int
	target    target
	over      expression
	only      expression // the condition of the loop; nil for none
	recursive bool
	body      []statement
	otherwise []statement
}

func (s *forBlock) exec(f *frame) jump {
	f.Line = s.line
	s.run(f, f.eval(s.over), 0)
	return onward
}

func (s *forBlock) run(f *frame, over any, depth int) {
	items := f.Iterate(over)
	if s.only != nil {
		items = s.chosen(f, items)
	}
	if len(items) == 0 {
		f.inner().exec(s.otherwise)
		return
	}
	f.keep(f.scope)
	l := &loop{block: s, frame: f, items: items, depth: depth}
	round := f.inner()
	for i, item := range items {
		l.at = i
		round.again()
		f.assign(round.scope, "loop", l)
		s.target.assign(round, item)
		if round.exec(s.body) == jumpBreak {
			return
		}
	}
}

// chosen returns the items that satisfy the condition of the loop.
func (s *forBlock) chosen(f *frame, items []any) []any {
	f.Items(len(items))
	kept := make([]any, 0, len(items))
	inner := f.inner()
	for _, item := range items {
		inner.again()
		s.target.assign(inner, item)
		if object.Truth(inner.eval(s.only)) {
			kept = append(kept, item)
		}
	}
	return kept
}

// loop is the variable loop. A call runs the body of a recursive loop over other items.
type loop struct {
	block   *forBlock
	frame   *frame
	items   []any
	at      int
	depth   int
	changed []any // the arguments of the last call of loop.changed
}

// Call runs the body of a recursive loop over other items.
func (l *loop) Call(r *library.Run, a *library.Arguments) any {
	if !l.block.recursive {
		object.Fail("the loop is not marked recursive")
	}
	over, _ := a.Value(0, "iterable")
	f := *l.frame
	f.out = &object.Builder{Meter: &r.Meter}
	l.block.run(&f, over, l.depth+1)
	return f.out.Text().Value()
}

// Attribute returns the attribute of the variable loop with the given name.
func (l *loop) Attribute(name string) any {
	adjacent := func(at int, what string) any {
		if at < 0 || at >= len(l.items) {
			return object.Undefined("the loop has no " + what + " item")
		}
		return l.items[at]
	}
	switch name {
	case "index":
		return l.at + 1
	case "index0":
		return l.at
	case "revindex":
		return len(l.items) - l.at
	case "revindex0":
		return len(l.items) - l.at - 1
	case "first":
		return l.at == 0
	case "last":
		return l.at == len(l.items)-1
	case "length":
		return len(l.items)
	case "depth":
		return l.depth + 1
	case "depth0":
		return l.depth
	case "previtem":
		return adjacent(l.at-1, "previous")
	case "nextitem":
		return adjacent(l.at+1, "next")
	case "cycle":
		return library.Function(func(_ *library.Run, a *library.Arguments) any {
			if len(a.Positional) == 0 {
				object.Fail("loop.cycle needs at least one value")
			}
			return a.Positional[l.at%len(a.Positional)]
		})
	case "changed":
		return library.Function(func(r *library.Run, a *library.Arguments) any {
			same := l.changed != nil && r.Equal(&object.List{Items: l.changed}, &object.List{Items: a.Positional})
			l.changed = append([]any{}, a.Positional...)
			return !same
		})
	}
	return object.Undefined("loop has no attribute '" + name + "'")
}

// Elements returns the items of the loop.
func (l *loop) Elements() []any { return l.items }
