package jinja

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// pieces collects the parts of a string, which share its bytes.
type pieces struct {
	m     *meter
	items []any
}

func (p *pieces) add(s string) {
	p.m.items(3) // the element, and the string's header behind it
	p.items = append(p.items, s)
}

func separator(a *arguments) (between string, given bool) {
	if v, ok := a.value(0, "sep"); !ok || v == nil {
		return "", false
	}
	if between = a.text(0, "sep", ""); between == "" {
		fail("%s cannot part a text by nothing", a.who)
	}
	return between, true
}

// split cuts at a separator, or at runs of white space, from the left.
func split(r *run, s string, a *arguments) any {
	between, given := separator(a)
	p := &pieces{m: &r.meter}
	if !given {
		s = strings.TrimLeftFunc(s, isSpace)
	}
	for most := a.integer(1, "maxsplit", -1); most != 0; most-- {
		at, size := strings.Index(s, between), len(between)
		if !given {
			at, size = strings.IndexFunc(s, isSpace), 0
		}
		if at < 0 {
			break
		}
		p.add(s[:at])
		if s = s[at+size:]; !given {
			s = strings.TrimLeftFunc(s, isSpace)
		}
	}
	if given || s != "" {
		p.add(s)
	}
	return &List{items: p.items}
}

// rsplit is split from the right.
func rsplit(r *run, s string, a *arguments) any {
	between, given := separator(a)
	p := &pieces{m: &r.meter}
	if !given {
		s = strings.TrimRightFunc(s, isSpace)
	}
	for most := a.integer(1, "maxsplit", -1); most != 0; most-- {
		at, size := strings.LastIndex(s, between), len(between)
		if !given {
			if at = strings.LastIndexFunc(s, isSpace); at >= 0 {
				_, size = utf8.DecodeRuneInString(s[at:])
			}
		}
		if at < 0 {
			break
		}
		p.add(s[at+size:])
		if s = s[:at]; !given {
			s = strings.TrimRightFunc(s, isSpace)
		}
	}
	if given || s != "" {
		p.add(s)
	}
	slices.Reverse(p.items)
	return &List{items: p.items}
}

// splitLines cuts at the ends of lines, of which \r\n is one.
func splitLines(r *run, s string, a *arguments) any {
	keep := a.flag(0, "keepends", false)
	p := &pieces{m: &r.meter}
	for s != "" {
		at := strings.IndexFunc(s, endsLine)
		if at < 0 {
			p.add(s)
			break
		}
		_, size := utf8.DecodeRuneInString(s[at:])
		if strings.HasPrefix(s[at:], "\r\n") {
			size = 2
		}
		if keep {
			p.add(s[:at+size])
		} else {
			p.add(s[:at])
		}
		s = s[at+size:]
	}
	return &List{items: p.items}
}

func endsLine(c rune) bool {
	return c >= '\n' && c <= '\r' || c >= 0x1c && c <= 0x1e || c == 0x85 || c == 0x2028 || c == 0x2029
}

// partition cuts in three: before the separator, it, and after it. Where there is none, all is
// before it or, backwards, after.
func partition(index func(s, sub string) int, backwards bool) stringMethod {
	return func(r *run, s string, a *arguments) any {
		between, given := separator(a)
		if !given {
			fail("%s needs the argument sep", a.who)
		}
		p := &pieces{m: &r.meter}
		parts := [3]string{s, "", ""}
		if at := index(s, between); at >= 0 {
			parts = [3]string{s[:at], between, s[at+len(between):]}
		} else if backwards {
			parts = [3]string{"", "", s}
		}
		for _, part := range parts {
			p.add(part)
		}
		return &List{p.items, true}
	}
}
