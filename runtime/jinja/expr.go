package jinja

import (
	"sandwich/runtime/jinja/internal/object"

	"sandwich/runtime/jinja/internal/library"
)

// expression is a node of an expression tree. Only frame.eval calls its method eval, after it has
// charged a step.
type expression interface{ eval(f *frame) any }

// eval evaluates one expression.
func (f *frame) eval(e expression) any {
	f.Spend(1)
	return e.eval(f)
}

type literal struct{ value any }

func (l literal) eval(*frame) any { return l.value }

type variable string

func (v variable) eval(f *frame) any {
	for s := f.scope; s != nil; s = s.outer {
		if i := f.find(s, string(v)); i >= 0 {
			return s.vars[i].Value
		}
	}
	if g, ok := library.Globals[string(v)]; ok {
		return g
	}
	return object.Undefined("'" + string(v) + "' is undefined")
}

type listExpr struct {
	elements []expression
	tuple    bool
}

func (l *listExpr) eval(f *frame) any {
	f.Items(len(l.elements))
	items := make([]any, len(l.elements))
	for i, e := range l.elements {
		items[i] = f.eval(e)
	}
	return &object.List{Items: items, Tuple: l.tuple}
}

type dictExpr struct{ keys, values []expression }

func (d *dictExpr) eval(f *frame) any {
	dict := &object.Dict{}
	for i := range d.keys {
		key := f.eval(d.keys[i])
		f.Put(dict, key, f.eval(d.values[i]))
	}
	return dict
}

type conditional struct{ test, yes, no expression }

func (c *conditional) eval(f *frame) any {
	switch {
	case object.Truth(f.eval(c.test)):
		return f.eval(c.yes)
	case c.no != nil:
		return f.eval(c.no)
	}
	return object.Undefined("the conditional expression has no else")
}

type logic struct {
	or   bool
	a, b expression
}

func (l *logic) eval(f *frame) any {
	if a := f.eval(l.a); object.Truth(a) == l.or {
		return a
	}
	return f.eval(l.b)
}

type concat struct{ a, b expression }

func (c *concat) eval(f *frame) any {
	a := f.TextOf(f.eval(c.a))
	b := f.TextOf(f.eval(c.b))
	return f.Concat(a, b).Value()
}

type unary struct {
	op string
	of expression
}

func (u *unary) eval(f *frame) any {
	v := f.eval(u.of)
	if u.op == "not" {
		return !object.Truth(v)
	}
	switch n := object.Number(v).(type) {
	case int:
		if u.op == "-" {
			return f.Arithmetic("-", 0, n)
		}
		return n
	case float64:
		if u.op == "-" {
			return -n
		}
		return n
	}
	object.Strict(v)
	object.Fail("cannot apply the sign %s to a %s", u.op, object.TypeName(v))
	return nil
}

type arithmetic struct {
	op   string
	a, b expression
}

func (b *arithmetic) eval(f *frame) any {
	x := f.eval(b.a)
	return f.Arithmetic(b.op, x, f.eval(b.b))
}

// compare is a chain of comparisons: a < b < c means a < b and b < c.
type compare struct {
	first expression
	ops   []string
	rest  []expression
}

func (c *compare) eval(f *frame) any {
	left := f.eval(c.first)
	for i, op := range c.ops {
		right := f.eval(c.rest[i])
		if !f.Compare(op, left, right) {
			return false
		}
		left = right
	}
	return true
}

type attribute struct {
	of   expression
	name string
}

func (a *attribute) eval(f *frame) any { return f.Attribute(f.eval(a.of), a.name) }

type subscript struct{ of, key expression }

func (s *subscript) eval(f *frame) any {
	of := f.eval(s.of)
	return f.Item(of, f.eval(s.key))
}

type slice struct {
	of     expression
	bounds [3]expression
}

func (s *slice) eval(f *frame) any {
	of := f.eval(s.of)
	var bounds [3]any
	for i, b := range s.bounds {
		if b != nil {
			bounds[i] = f.eval(b)
		}
	}
	return f.Slice(of, bounds)
}

type namedExpr struct {
	name  string
	value expression
}

type argumentList struct {
	positional     []expression
	named          []namedExpr
	star, starStar expression
}

// evaluate returns the arguments of a call to who.
func (a *argumentList) evaluate(f *frame, who string) *library.Arguments {
	out := &library.Arguments{Who: who, Meter: &f.Meter}
	f.Items(len(a.positional) + 2*len(a.named))
	for _, e := range a.positional {
		out.Positional = append(out.Positional, f.eval(e))
	}
	for _, n := range a.named {
		out.Named = append(out.Named, library.NamedValue{Name: n.name, Value: f.eval(n.value)})
	}
	if a.star != nil {
		items := f.Iterate(f.eval(a.star))
		f.Items(len(items))
		out.Positional = append(out.Positional, items...)
	}
	if a.starStar != nil {
		d, ok := f.eval(a.starStar).(*object.Dict)
		if !ok {
			object.Fail("** needs a mapping")
		}
		f.Items(2 * len(d.Entries))
		for _, e := range d.Entries {
			out.Named = append(out.Named, library.NamedValue{Name: f.Str(e.Key), Value: e.Value})
		}
	}
	return out
}

type callExpr struct {
	of        expression
	arguments argumentList
}

func (c *callExpr) eval(f *frame) any { return c.call(f, nil) }

// call evaluates the call. caller is the body of a call block, or nil.
func (c *callExpr) call(f *frame, caller any) any {
	of := f.eval(c.of)
	target, ok := of.(library.Callable)
	if !ok {
		object.Strict(of)
		object.Fail("a %s cannot be called", object.TypeName(of))
	}
	a := c.arguments.evaluate(f, "the function")
	if caller != nil {
		a.Named = append(a.Named, library.NamedValue{Name: "caller", Value: caller})
	}
	f.Enter()
	defer f.Leave()
	return target.Call(f.Run, a)
}

type filterExpr struct {
	of        expression // nil: the text that the block collected
	name      string
	arguments argumentList
}

func (e *filterExpr) eval(f *frame) any {
	in := f.collected
	if e.of != nil {
		in = f.eval(e.of)
	}
	return f.Filter(e.name, in, e.arguments.evaluate(f, e.name))
}

type testExpr struct {
	of        expression
	name      string
	negated   bool
	arguments argumentList
}

func (e *testExpr) eval(f *frame) any {
	of := f.eval(e.of)
	return f.Test(e.name, of, e.arguments.evaluate(f, e.name)) != e.negated
}
