package library

import (
	"slices"
	"strings"
	"unicode/utf8"

	"sandwich/runtime/jinja/internal/object"
)

// pieces collects parts of a text. They share the bytes of the text.
type pieces struct {
	m     *object.Meter
	of    object.Text
	items []any
}

func (p *pieces) add(from, to int) {
	p.m.Items(3) // an element and a string header
	p.items = append(p.items, p.m.Cut(p.of, from, to).Value())
}

func separator(a *Arguments) (between string, given bool) {
	if v, ok := a.Value(0, "sep"); !ok || v == nil {
		return "", false
	}
	if between = a.text(0, "sep", ""); between == "" {
		object.Fail("%s needs a separator that is not empty", a.Who)
	}
	return between, true
}

// split splits a text at a separator or, by default, at runs of white space, from the left.
func split(r *Run, t object.Text, a *Arguments) any {
	between, given := separator(a)
	p, s := &pieces{m: &r.Meter, of: t}, t.Plain
	from := 0
	skip := func() {
		if !given {
			from = len(s) - len(strings.TrimLeftFunc(s[from:], object.IsSpace))
		}
	}
	skip()
	for limit := a.integer(1, "maxsplit", -1); limit != 0; limit-- {
		at, size := strings.Index(s[from:], between), len(between)
		if !given {
			at, size = strings.IndexFunc(s[from:], object.IsSpace), 0
		}
		if at < 0 {
			break
		}
		r.Found(t, object.Text{Plain: between})
		p.add(from, from+at)
		from += at + size
		skip()
	}
	if given || from < len(s) {
		p.add(from, len(s))
	}
	return &object.List{Items: p.items}
}

// rsplit splits like split, but from the right.
func rsplit(r *Run, t object.Text, a *Arguments) any {
	between, given := separator(a)
	p, s := &pieces{m: &r.Meter, of: t}, t.Plain
	trim := func() {
		if !given {
			s = strings.TrimRightFunc(s, object.IsSpace)
		}
	}
	trim()
	for limit := a.integer(1, "maxsplit", -1); limit != 0; limit-- {
		at, size := strings.LastIndex(s, between), len(between)
		if !given {
			if at = strings.LastIndexFunc(s, object.IsSpace); at >= 0 {
				_, size = utf8.DecodeRuneInString(s[at:])
			}
		}
		if at < 0 {
			break
		}
		r.Found(t, object.Text{Plain: between})
		p.add(at+size, len(s))
		s = s[:at]
		trim()
	}
	if given || s != "" {
		p.add(0, len(s))
	}
	slices.Reverse(p.items)
	return &object.List{Items: p.items}
}

// splitLines splits a text at line ends; \r\n is a single line end.
func splitLines(r *Run, t object.Text, a *Arguments) any {
	keep := a.flag(0, "keepends", false)
	p, s := &pieces{m: &r.Meter, of: t}, t.Plain
	for from := 0; from < len(s); {
		at := strings.IndexFunc(s[from:], endsLine)
		if at < 0 {
			p.add(from, len(s))
			break
		}
		at += from
		_, size := utf8.DecodeRuneInString(s[at:])
		if strings.HasPrefix(s[at:], "\r\n") {
			size = 2
		}
		if keep {
			p.add(from, at+size)
		} else {
			p.add(from, at)
		}
		from = at + size
	}
	return &object.List{Items: p.items}
}

func endsLine(c rune) bool {
	return c >= '\n' && c <= '\r' || c >= 0x1c && c <= 0x1e || c == 0x85 || c == 0x2028 || c == 0x2029
}

// partition returns a method that splits a text into the part before the separator, the separator
// and the part after it. Without a separator the first part is the whole text or, if backwards, the
// last.
func partition(index func(s, sub string) int, backwards bool) stringMethod {
	return func(r *Run, t object.Text, a *Arguments) any {
		between, given := separator(a)
		if !given {
			object.Fail("%s needs the argument sep", a.Who)
		}
		p, n := &pieces{m: &r.Meter, of: t}, len(t.Plain)
		from, to := n, n
		if at := index(t.Plain, between); at >= 0 {
			r.Found(t, object.Text{Plain: between})
			from, to = at, at+len(between)
		} else if backwards {
			from, to = 0, 0
		}
		p.add(0, from)
		p.add(from, to)
		p.add(to, n)
		return &object.List{Items: p.items, Tuple: true}
	}
}
