package jinja

// callable is a value that a template can call. The caller of call limits the depth of calls.
type callable interface {
	call(r *run, a *arguments) any
}

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
	f.take(entryBytes)
	f.keep(f.scope)
	return &macro{name, params, body, f.scope}
}

func (m *macro) call(r *run, a *arguments) any {
	line := r.line
	f := &frame{run: r, scope: &scope{outer: m.scope}, out: &builder{m: &r.meter}}
	r.spend(2)
	for i, param := range m.params {
		value, ok := a.value(i, param.name)
		switch {
		case ok:
		case param.otherwise != nil:
			value = f.eval(param.otherwise)
		default:
			value = undefined("parameter '" + param.name + "' was not provided")
		}
		r.assign(f.scope, param.name, value)
	}
	m.rest(f, a)
	f.exec(m.body)
	r.line = line
	return f.out.text().Value()
}

// rest binds varargs, kwargs and caller.
func (m *macro) rest(f *frame, a *arguments) {
	more := &List{tuple: true}
	if len(a.positional) > len(m.params) {
		more.items = a.positional[len(m.params):]
	}
	f.assign(f.scope, "varargs", more)
	named := &Dict{}
next:
	for _, n := range a.named {
		for _, param := range m.params {
			if param.name == n.name {
				continue next
			}
		}
		if n.name == "caller" {
			f.assign(f.scope, "caller", n.value)
			continue
		}
		f.put(named, n.name, n.value)
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
	f.line = s.line
	f.write(f.out, s.call.call(f, f.macro("caller", s.params, s.body)))
	return onward
}
