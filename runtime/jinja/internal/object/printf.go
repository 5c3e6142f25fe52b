package object

import "strings"

// Printf implements the operator % for strings.
func (m *Meter) Printf(layout Text, values any) Text {
	out := &Builder{Meter: m}
	tuple, ok := values.(*List)
	if !ok || !tuple.Tuple {
		tuple = &List{Items: []any{values}}
	}
	used := 0
	next := func() any {
		if used >= len(tuple.Items) {
			Fail("not enough values for a format string")
		}
		used++
		return tuple.Items[used-1]
	}
	for from, n := 0, len(layout.Plain); ; {
		text, rest, found := strings.Cut(layout.Plain[from:], "%")
		out.WritePart(layout, from, from+len(text))
		if !found {
			break
		}
		sp, v, rest := m.verb(rest, values, next)
		if from = n - len(rest); sp.verb == '%' {
			out.WritePart(layout, from-1, from)
			continue
		}
		out.WriteText(m.Formatted(sp, v))
	}
	if _, isDict := values.(*Dict); !isDict && used < len(tuple.Items) {
		Fail("too many values for a format string")
	}
	return out.Text()
}

// verb parses [(key)][flags][width][.precision]verb after a % and returns the spec, its value and
// the rest of s.
func (m *Meter) verb(s string, values any, next func() any) (sp Spec, v any, rest string) {
	m.Spend(1)
	sp = Spec{Fill: ' ', Align: '>', precision: -1}
	d, keyed := values.(*Dict)
	if keyed = keyed && strings.HasPrefix(s, "("); keyed {
		end := strings.IndexByte(s, ')')
		if end < 0 {
			Fail("a format string has an unmatched bracket")
		}
		v = m.Element(d, s[1:end])
		Strict(v)
		s = s[end+1:]
	}
	for ; s != "" && strings.IndexByte("-+ #0", s[0]) >= 0; s = s[1:] {
		switch s[0] {
		case '-':
			sp.Align, sp.Fill = '<', ' '
		case '0':
			if sp.Align == '>' {
				sp.Align, sp.Fill = '=', '0'
			}
		case '#':
			sp.alternate = true
		default:
			sp.sign = s[0]
		}
	}
	number := func() (n int) {
		if strings.HasPrefix(s, "*") {
			s = s[1:]
			n, _ := next().(int)
			return n
		}
		n, s = leadingNumber(s)
		return n
	}
	sp.Width = number()
	if strings.HasPrefix(s, ".") {
		s = s[1:]
		sp.precision = max(0, number())
	}
	if s == "" || strings.IndexByte("sdiufFeEgGxXorac%", s[0]) < 0 {
		Fail("a format string has the unknown verb %s", Clip(s, 10))
	}
	sp.verb, rest = s[0], s[1:]
	if sp.verb == '%' {
		return sp, nil, rest
	}
	if !keyed {
		v = next()
	}
	return m.verbValue(sp, v, rest)
}

// verbValue converts a value to the type that the verb formats, and the verb to one of str.format.
func (m *Meter) verbValue(sp Spec, v any, rest string) (Spec, any, string) {
	switch sp.verb {
	case 's':
		v = m.TextOf(v).Value()
	case 'r', 'a':
		b := &Builder{Meter: m}
		m.Repr(b, v)
		v, sp.verb = b.Text().Value(), 's'
	case 'c':
		if IsText(v) {
			sp.verb = 's'
		}
	case 'd', 'i', 'u':
		sp.verb = 'd'
		if f, ok := Number(v).(float64); ok {
			if !(f > -(1<<62) && f < 1<<62) {
				Fail("integer overflow")
			}
			v = int(f)
		}
	}
	if sp.verb != 's' && sp.verb != 'c' && Number(v) == nil {
		Strict(v)
		Fail("the verb %%%c needs a number, not a %s", sp.verb, TypeName(v))
	}
	if sp.verb == 's' && sp.Fill == '0' {
		sp.Fill, sp.Align = ' ', '>'
	}
	return sp, v, rest
}
