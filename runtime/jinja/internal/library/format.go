package library

import (
	"strconv"
	"strings"

	"sandwich/runtime/jinja/internal/object"
)

// format implements str.format.
func (r *Run) format(layout object.Text, a *Arguments) object.Text {
	out := &object.Builder{Meter: &r.Meter}
	next, from, s := 0, 0, layout.Plain
	for from < len(s) {
		at := strings.IndexAny(s[from:], "{}")
		if at < 0 {
			break
		}
		at += from
		out.WritePart(layout, from, at)
		from = at + 1
		if from < len(s) && s[from] == s[at] { // a doubled brace is a literal brace
			out.WritePart(layout, at, from)
			from++
			continue
		}
		n := closingBrace(s[from:])
		if s[at] == '}' || n < 0 {
			object.Fail("a format string has an unmatched brace")
		}
		out.WriteText(r.field(s[from:from+n], a, &next))
		from += n + 1
	}
	out.WritePart(layout, from, len(s))
	return out.Text()
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
func (r *Run) field(field string, a *Arguments, next *int) object.Text {
	r.Scan(len(field))
	name, layout, _ := strings.Cut(field, ":")
	name, conversion, _ := strings.Cut(name, "!")
	v := r.fieldValue(name, a, next)
	switch conversion {
	case "r", "a":
		b := &object.Builder{Meter: &r.Meter}
		r.Repr(b, v)
		v = b.Text().Value()
	case "s":
		v = r.TextOf(v).Value()
	case "":
	default:
		object.Fail("a format string has the unknown conversion %s", object.Clip(conversion, 20))
	}
	if strings.Contains(layout, "{") {
		at := strings.IndexByte(layout, '{')
		end := closingBrace(layout[at+1:])
		if end < 0 || strings.ContainsAny(layout[at+1:at+1+end], "{:!") {
			object.Fail("a format string nests fields more than two levels deep")
		}
		inner := r.Str(r.fieldValue(layout[at+1:at+1+end], a, next))
		r.Text(len(layout) + len(inner))
		layout = layout[:at] + inner + layout[at+end+2:]
	}
	return r.Formatted(object.ReadSpec(layout), v)
}

// fieldValue returns the argument that a field names, or one of its attributes or elements.
func (r *Run) fieldValue(name string, a *Arguments, next *int) any {
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
	v, ok := a.Value(i, first)
	if !ok {
		object.Fail("format: missing argument %s", object.Clip(first, 40))
	}
	for path != "" {
		r.Spend(1)
		if path[0] == '.' {
			end := strings.IndexAny(path[1:], ".[") + 1
			if end == 0 {
				end = len(path)
			}
			v, path = r.Attribute(v, path[1:end]), path[end:]
			continue
		}
		end := strings.IndexByte(path, ']')
		if end < 0 {
			object.Fail("a format string has an unmatched bracket")
		}
		var key any = path[1:end]
		if n, err := strconv.Atoi(path[1:end]); err == nil {
			key = n
		}
		v, path = r.Item(v, key), path[end+1:]
		if path != "" && path[0] != '.' && path[0] != '[' {
			object.Fail("a format string has an invalid field name")
		}
	}
	return v
}
