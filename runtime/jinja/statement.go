package jinja

import (
	"sandwich/runtime/jinja/internal/object"

	"sandwich/runtime/jinja/internal/library"
)

// frame is the environment of statements: their variables and their output.
type frame struct {
	*library.Run
	scope     *scope
	out       *object.Builder
	collected any // input of the filters of a block
}

// scope holds the variables of one iteration of a loop, a macro call or another block. Variables of
// outer scopes are visible in it.
type scope struct {
	vars  []library.NamedValue
	outer *scope
	kept  bool // a value refers to the scope, so its memory was charged
}

// keep marks a scope and its outer scopes as referred to by a value, and charges their memory.
func (m *frame) keep(s *scope) {
	for ; s != nil && !s.kept; s = s.outer {
		s.kept = true
		m.Take((1 + len(s.vars)) * object.EntryBytes)
	}
}

// find returns the index of a variable in the scope, or -1. Scopes rarely have more than five
// variables, for which a linear search is faster than a map.
func (m *frame) find(s *scope, name string) int {
	m.Spend(1 + len(s.vars)/8)
	for i := range s.vars {
		if s.vars[i].Name == name {
			return i
		}
	}
	return -1
}

func (m *frame) assign(s *scope, name string, value any) {
	if i := m.find(s, name); i >= 0 {
		s.vars[i].Value = value
		return
	}
	if s.kept {
		m.Take(object.EntryBytes)
	}
	s.vars = append(s.vars, library.NamedValue{Name: name, Value: value})
}

// again prepares the frame for the next iteration of a loop. It reuses the scope unless a value
// refers to it.
func (f *frame) again() {
	f.Spend(2)
	if f.scope.kept {
		f.scope = &scope{outer: f.scope.outer}
		return
	}
	clear(f.scope.vars)
	f.scope.vars = f.scope.vars[:0]
}

// inner returns a frame with a new scope inside the frame's scope.
func (f *frame) inner() *frame {
	f.Spend(2)
	return &frame{Run: f.Run, scope: &scope{outer: f.scope}, out: f.out}
}

// collect runs a body in a new scope and returns its output as a value.
func (f *frame) collect(body []statement) any {
	inner := f.inner()
	inner.out = &object.Builder{Meter: &f.Meter}
	inner.exec(body)
	return inner.out.Text().Value()
}

// jump is the way a body ended: normally, by break or by continue. As a statement it is break or
// continue.
type jump string

const (
	onward    jump = ""
	jumpBreak jump = "break"
)

type statement interface{ exec(f *frame) jump }

// exec runs statements until one of them jumps.
func (f *frame) exec(body []statement) jump {
	for _, s := range body {
		f.Spend(1)
		if j := s.exec(f); j != onward {
			return j
		}
	}
	return onward
}

func (j jump) exec(*frame) jump { return j }

type literalText string

func (t literalText) exec(f *frame) jump {
	f.out.Print(string(t))
	return onward
}

type print struct {
	line int
	of   expression
}

func (p *print) exec(f *frame) jump {
	f.Line = p.line
	f.Print(f.out, f.eval(p.of))
	return onward
}

type branch struct {
	test expression
	body []statement
}

type ifBlock struct {
	line      int
	branches  []branch
	otherwise []statement
}

func (s *ifBlock) exec(f *frame) jump {
	f.Line = s.line
	for _, b := range s.branches {
		if object.Truth(f.eval(b.test)) {
			return f.exec(b.body)
		}
	}
	return f.exec(s.otherwise)
}

// target is a name, an attribute of a namespace, or a tuple of targets.
type target struct {
	name, attribute string
	parts           []target
}

func (t target) assign(f *frame, value any) {
	switch {
	case t.parts != nil:
		items := f.Iterate(value)
		if len(items) != len(t.parts) {
			object.Fail("cannot assign %d values to %d names", len(items), len(t.parts))
		}
		for i, part := range t.parts {
			part.assign(f, items[i])
		}
	case t.attribute != "":
		ns, ok := variable(t.name).eval(f).(*object.Namespace)
		if !ok {
			object.Fail("cannot set an attribute of %s, which is not a namespace", object.Clip(t.name, 40))
		}
		f.Put(&ns.Dict, t.attribute, value)
	default:
		f.assign(f.scope, t.name, value)
	}
}

type setBlock struct {
	line    int
	target  target
	value   expression // nil: the output of body after filters
	filters expression
	body    []statement
}

func (s *setBlock) exec(f *frame) jump {
	f.Line = s.line
	if s.value != nil {
		s.target.assign(f, f.eval(s.value))
		return onward
	}
	s.target.assign(f, f.filtered(s.filters, s.body))
	return onward
}

// filtered returns the output of a body after the filters, which may be nil.
func (f *frame) filtered(filters expression, body []statement) any {
	text := f.collect(body)
	if filters == nil {
		return text
	}
	over := *f
	over.collected = text
	return over.eval(filters)
}

type filterBlock struct {
	line    int
	filters expression
	body    []statement
}

func (s *filterBlock) exec(f *frame) jump {
	f.Line = s.line
	f.Print(f.out, f.filtered(s.filters, s.body))
	return onward
}

// withBlock is a block with a scope and some variables. The generation tag, which marks text of the
// assistant, is one without variables.
type withBlock struct {
	line    int
	targets []target
	values  []expression
	body    []statement
}

func (s *withBlock) exec(f *frame) jump {
	f.Line = s.line
	inner := f.inner()
	for i, t := range s.targets {
		t.assign(inner, f.eval(s.values[i]))
	}
	return inner.exec(s.body)
}
