package jinja

import (
	"sandwich/runtime/jinja/internal/object"

	"sandwich/runtime/jinja/internal/library"
)

type parameter struct {
	name      string
	otherwise expression // nil: undefined
}

type macroBlock struct {
	line   int
	name   string
	params []parameter
	body   []statement
}

func (s *macroBlock) exec(f *frame) jump {
	f.assign(f.scope, s.name, f.macro(s.name, s.params, s.body))
	return onward
}

// macro is a macro, or the body of a call block, with the scope of its definition.
type macro struct {
	name   string
	params []parameter
	body   []statement
	scope  *scope
}

func (f *frame) macro(name string, params []parameter, body []statement) *macro {
	f.Take(object.EntryBytes)
	f.keep(f.scope)
	return &macro{name, params, body, f.scope}
}

func (m *macro) Call(r *library.Run, a *library.Arguments) any {
	line := r.Line
	f := &frame{Run: r, scope: &scope{outer: m.scope}, out: &object.Builder{Meter: &r.Meter}}
	r.Spend(2)
	for i, param := range m.params {
		value, ok := a.Value(i, param.name)
		switch {
		case ok:
		case param.otherwise != nil:
			value = f.eval(param.otherwise)
		default:
			value = object.Undefined("parameter '" + param.name + "' was not provided")
		}
		f.assign(f.scope, param.name, value)
	}
	m.rest(f, a)
	f.exec(m.body)
	r.Line = line
	return f.out.Text().Value()
}

// rest binds varargs, kwargs and caller.
func (m *macro) rest(f *frame, a *library.Arguments) {
	more := &object.List{Tuple: true}
	if len(a.Positional) > len(m.params) {
		more.Items = a.Positional[len(m.params):]
	}
	f.assign(f.scope, "varargs", more)
	named := &object.Dict{}
next:
	for _, n := range a.Named {
		for _, param := range m.params {
			if param.name == n.Name {
				continue next
			}
		}
		if n.Name == "caller" {
			f.assign(f.scope, "caller", n.Value)
			continue
		}
		f.Put(named, n.Name, n.Value)
	}
	f.assign(f.scope, "kwargs", named)
}

type callBlock struct {
	line   int
	params []parameter
	call   *callExpr
	body   []statement
}

func (s *callBlock) exec(f *frame) jump {
	f.Line = s.line
	f.Print(f.out, s.call.call(f, f.macro("caller", s.params, s.body)))
	return onward
}

// Attribute returns the attribute of a macro with the given name.
func (m *macro) Attribute(name string) any {
	if name == "name" {
		return m.name
	}
	return object.Undefined("a function has no attribute '" + name + "'")
}
