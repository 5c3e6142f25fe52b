package jinja

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
	f.line = s.line
	s.run(f, f.eval(s.over), 0)
	return onward
}

func (s *forBlock) run(f *frame, over any, depth int) {
	items := f.iterate(over)
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
	f.items(len(items))
	kept := make([]any, 0, len(items))
	inner := f.inner()
	for _, item := range items {
		inner.again()
		s.target.assign(inner, item)
		if truth(inner.eval(s.only)) {
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

func (l *loop) call(r *run, a *arguments) any {
	if !l.block.recursive {
		fail("the loop is not marked recursive")
	}
	over, _ := a.value(0, "iterable")
	f := *l.frame
	f.out = &builder{m: &r.meter}
	l.block.run(&f, over, l.depth+1)
	return f.out.text().Value()
}

func (l *loop) attribute(name string) any {
	adjacent := func(at int, what string) any {
		if at < 0 || at >= len(l.items) {
			return undefined("the loop has no " + what + " item")
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
		return function(func(_ *run, a *arguments) any {
			if len(a.positional) == 0 {
				fail("loop.cycle needs at least one value")
			}
			return a.positional[l.at%len(a.positional)]
		})
	case "changed":
		return function(func(r *run, a *arguments) any {
			same := l.changed != nil && r.equal(&List{items: l.changed}, &List{items: a.positional})
			l.changed = append([]any{}, a.positional...)
			return !same
		})
	}
	return undefined("loop has no attribute '" + name + "'")
}
