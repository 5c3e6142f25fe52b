package jinja

// frame is where statements run: the variables they see and the text they write to.
type frame struct {
	*run
	scope     *scope
	out       *builder
	collected any // text of the block that filters are applied to
}

// scope holds the variables of a loop's round, a macro's call or another block; those outside it
// are seen through it.
type scope struct {
	vars  []namedValue
	outer *scope
	kept  bool // something that a template can keep refers to it, so it is paid for as memory
}

// keep marks a scope, and those around it, as referred to by a value.
func (m *meter) keep(s *scope) {
	for ; s != nil && !s.kept; s = s.outer {
		s.kept = true
		m.take((1 + len(s.vars)) * entryBytes)
	}
}

// find returns where a variable stands in the scope, or -1. Few scopes hold more than five: a map
// would cost more.
func (m *meter) find(s *scope, name string) int {
	m.spend(1 + len(s.vars)/8)
	for i := range s.vars {
		if s.vars[i].name == name {
			return i
		}
	}
	return -1
}

func (m *meter) assign(s *scope, name string, value any) {
	if i := m.find(s, name); i >= 0 {
		s.vars[i].value = value
		return
	}
	if s.kept {
		m.take(entryBytes)
	}
	s.vars = append(s.vars, namedValue{name, value})
}

// again is the frame of a loop's next round, in the scope of the last one if nothing holds that.
func (f *frame) again() {
	f.spend(2)
	if f.scope.kept {
		f.scope = &scope{outer: f.scope.outer}
		return
	}
	clear(f.scope.vars)
	f.scope.vars = f.scope.vars[:0]
}

// inner is a frame with variables of its own.
func (f *frame) inner() *frame {
	f.spend(2)
	return &frame{run: f.run, scope: &scope{outer: f.scope}, out: f.out}
}

// collect runs a body in a scope of its own and returns what it wrote, as a value.
func (f *frame) collect(body []statement) any {
	inner := f.inner()
	inner.out = &builder{m: &f.meter}
	inner.exec(body)
	return inner.out.text().Value()
}

// jump is how a body ended: at its end, or by break or continue. As a statement it is one of these
// two.
type jump string

const (
	onward    jump = ""
	jumpBreak jump = "break"
)

type statement interface{ exec(f *frame) jump }

// exec runs statements up to the first that jumps.
func (f *frame) exec(body []statement) jump {
	for _, s := range body {
		f.spend(1)
		if j := s.exec(f); j != onward {
			return j
		}
	}
	return onward
}

func (j jump) exec(*frame) jump { return j }

type literalText string

func (t literalText) exec(f *frame) jump {
	f.out.write(string(t))
	return onward
}

type print struct {
	line int
	of   expression
}

func (p *print) exec(f *frame) jump {
	f.line = p.line
	f.write(f.out, f.eval(p.of))
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
	f.line = s.line
	for _, b := range s.branches {
		if truth(f.eval(b.test)) {
			return f.exec(b.body)
		}
	}
	return f.exec(s.otherwise)
}

// target is a name, an attribute of a named namespace, or a tuple of targets.
type target struct {
	name, attribute string
	parts           []target
}

func (t target) assign(f *frame, value any) {
	switch {
	case t.parts != nil:
		items := f.iterate(value)
		if len(items) != len(t.parts) {
			fail("%d values do not go into %d names", len(items), len(t.parts))
		}
		for i, part := range t.parts {
			part.assign(f, items[i])
		}
	case t.attribute != "":
		ns, ok := variable(t.name).eval(f).(*namespace)
		if !ok {
			fail("only the attributes of a namespace can be set, which %s is not", clip(t.name, 40))
		}
		f.put(&ns.Dict, t.attribute, value)
	default:
		f.assign(f.scope, t.name, value)
	}
}

type setBlock struct {
	line    int
	target  target
	value   expression // nil: the body's text, through the filters
	filters expression
	body    []statement
}

func (s *setBlock) exec(f *frame) jump {
	f.line = s.line
	if s.value != nil {
		s.target.assign(f, f.eval(s.value))
		return onward
	}
	s.target.assign(f, f.filtered(s.filters, s.body))
	return onward
}

// filtered is what a body writes, through filters if there are any.
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
	f.line = s.line
	f.write(f.out, f.filtered(s.filters, s.body))
	return onward
}

// withBlock is a scope with some variables. The generation tag, which marks what the assistant
// wrote, is one with none.
type withBlock struct {
	line    int
	targets []target
	values  []expression
	body    []statement
}

func (s *withBlock) exec(f *frame) jump {
	f.line = s.line
	inner := f.inner()
	for i, t := range s.targets {
		t.assign(inner, f.eval(s.values[i]))
	}
	return inner.exec(s.body)
}
