package jinja

import (
	"strconv"
	"strings"
)

// format implements str.format.
func (r *run) format(layout Text, a *arguments) Text {
	out := &builder{m: &r.meter}
	next, from, s := 0, 0, layout.Plain
	for from < len(s) {
		at := strings.IndexAny(s[from:], "{}")
		if at < 0 {
			break
		}
		at += from
		out.writePart(layout, from, at)
		from = at + 1
		if from < len(s) && s[from] == s[at] { // a doubled brace is a literal brace
			out.writePart(layout, at, from)
			from++
			continue
		}
		n := closingBrace(s[from:])
		if s[at] == '}' || n < 0 {
			fail("a format string has an unmatched brace")
		}
		out.writeText(r.field(s[from:from+n], a, &next))
		from += n + 1
	}
	out.writePart(layout, from, len(s))
	return out.text()
}

// closingBrace returns the end of the field that s starts with, or -1. The spec of a field may
// contain another field.
func closingBrace(s string) int {
	depth := 0
	for i := range len(s) {
		switch s[i] {
		case '{':
			depth++
		case '}':
			if depth--; depth < 0 {
				return i
			}
		}
	}
	return -1
}

// field returns the text of one {name!conversion:spec}. next is the index of the next automatic
// field.
func (r *run) field(field string, a *arguments, next *int) Text {
	r.scan(len(field))
	name, layout, _ := strings.Cut(field, ":")
	name, conversion, _ := strings.Cut(name, "!")
	v := r.fieldValue(name, a, next)
	switch conversion {
	case "r", "a":
		b := &builder{m: &r.meter}
		r.repr(b, v)
		v = b.text().Value()
	case "s":
		v = r.textOf(v).Value()
	case "":
	default:
		fail("a format string has the unknown conversion %s", clip(conversion, 20))
	}
	if strings.Contains(layout, "{") {
		at := strings.IndexByte(layout, '{')
		end := closingBrace(layout[at+1:])
		if end < 0 || strings.ContainsAny(layout[at+1:at+1+end], "{:!") {
			fail("a format string nests fields more than two levels deep")
		}
		inner := r.str(r.fieldValue(layout[at+1:at+1+end], a, next))
		r.text(len(layout) + len(inner))
		layout = layout[:at] + inner + layout[at+end+2:]
	}
	return r.formatted(readSpec(layout), v)
}

// fieldValue returns the argument that a field names, or one of its attributes or elements.
func (r *run) fieldValue(name string, a *arguments, next *int) any {
	end := strings.IndexAny(name, ".[")
	if end < 0 {
		end = len(name)
	}
	first, path := name[:end], name[end:]
	if first == "" {
		first = strconv.Itoa(*next)
		*next++
	}
	i, err := strconv.Atoi(first)
	if err != nil {
		i = -1
	}
	v, ok := a.value(i, first)
	if !ok {
		fail("format: missing argument %s", clip(first, 40))
	}
	for path != "" {
		r.spend(1)
		if path[0] == '.' {
			end := strings.IndexAny(path[1:], ".[") + 1
			if end == 0 {
				end = len(path)
			}
			v, path = r.attribute(v, path[1:end]), path[end:]
			continue
		}
		end := strings.IndexByte(path, ']')
		if end < 0 {
			fail("a format string has an unmatched bracket")
		}
		var key any = path[1:end]
		if n, err := strconv.Atoi(path[1:end]); err == nil {
			key = n
		}
		v, path = r.item(v, key), path[end+1:]
		if path != "" && path[0] != '.' && path[0] != '[' {
			fail("a format string has an invalid field name")
		}
	}
	return v
}

// printf implements the operator % for strings.
func (r *run) printf(layout Text, values any) Text {
	out := &builder{m: &r.meter}
	tuple, ok := values.(*List)
	if !ok || !tuple.tuple {
		tuple = &List{items: []any{values}}
	}
	used := 0
	next := func() any {
		if used >= len(tuple.items) {
			fail("not enough values for a format string")
		}
		used++
		return tuple.items[used-1]
	}
	for from, n := 0, len(layout.Plain); ; {
		text, rest, found := strings.Cut(layout.Plain[from:], "%")
		out.writePart(layout, from, from+len(text))
		if !found {
			break
		}
		sp, v, rest := r.verb(rest, values, next)
		if from = n - len(rest); sp.verb == '%' {
			out.writePart(layout, from-1, from)
			continue
		}
		out.writeText(r.formatted(sp, v))
	}
	if _, isDict := values.(*Dict); !isDict && used < len(tuple.items) {
		fail("too many values for a format string")
	}
	return out.text()
}

// verb parses [(key)][flags][width][.precision]verb after a % and returns the spec, its value and
// the rest of s.
func (r *run) verb(s string, values any, next func() any) (sp spec, v any, rest string) {
	r.spend(1)
	sp = spec{fill: ' ', align: '>', precision: -1}
	d, keyed := values.(*Dict)
	if keyed = keyed && strings.HasPrefix(s, "("); keyed {
		end := strings.IndexByte(s, ')')
		if end < 0 {
			fail("a format string has an unmatched bracket")
		}
		v = r.element(d, s[1:end])
		strict(v)
		s = s[end+1:]
	}
	for ; s != "" && strings.IndexByte("-+ #0", s[0]) >= 0; s = s[1:] {
		switch s[0] {
		case '-':
			sp.align, sp.fill = '<', ' '
		case '0':
			if sp.align == '>' {
				sp.align, sp.fill = '=', '0'
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
	sp.width = number()
	if strings.HasPrefix(s, ".") {
		s = s[1:]
		sp.precision = max(0, number())
	}
	if s == "" || strings.IndexByte("sdiufFeEgGxXorac%", s[0]) < 0 {
		fail("a format string has the unknown verb %s", clip(s, 10))
	}
	sp.verb, rest = s[0], s[1:]
	if sp.verb == '%' {
		return sp, nil, rest
	}
	if !keyed {
		v = next()
	}
	return r.verbValue(sp, v, rest)
}

// verbValue converts a value to the type that the verb formats, and the verb to one of str.format.
func (r *run) verbValue(sp spec, v any, rest string) (spec, any, string) {
	switch sp.verb {
	case 's':
		v = r.textOf(v).Value()
	case 'r', 'a':
		b := &builder{m: &r.meter}
		r.repr(b, v)
		v, sp.verb = b.text().Value(), 's'
	case 'c':
		if isText(v) {
			sp.verb = 's'
		}
	case 'd', 'i', 'u':
		sp.verb = 'd'
		if f, ok := number(v).(float64); ok {
			if !(f > -(1<<62) && f < 1<<62) {
				fail("integer overflow")
			}
			v = int(f)
		}
	}
	if sp.verb != 's' && sp.verb != 'c' && number(v) == nil {
		strict(v)
		fail("the verb %%%c needs a number, not a %s", sp.verb, typeName(v))
	}
	if sp.verb == 's' && sp.fill == '0' {
		sp.fill, sp.align = ' ', '>'
	}
	return sp, v, rest
}
