package jinja

import (
	"math"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// builder collects text with its origins, and charges for it.
type builder struct {
	strings.Builder
	spans []Span
	m     *meter
}

// text returns the collected text.
func (b *builder) text() Text { return Text{b.String(), b.spans} }

func (b *builder) write(s string) {
	if len(s) > b.m.limits.Text-b.Len() {
		b.m.stop("the template creates a text of more than %d bytes", b.m.limits.Text)
	}
	b.m.text(len(s))
	b.WriteString(s)
}

// writePart writes the bytes [from, to) of t.
func (b *builder) writePart(t Text, from, to int) {
	at := b.Len()
	b.write(t.Plain[from:to])
	if spans := t.within(from, to); len(spans) > 0 {
		b.m.spend(len(spans) / 8)
		b.m.take(len(spans) * spanBytes)
		b.spans = shifted(b.spans, spans, from, to, at-from)
	}
}

// writeText writes a text.
func (b *builder) writeText(t Text) { b.writePart(t, 0, len(t.Plain)) }

// writeFor writes s as a replacement of one byte of t, such as its escape, with the origin of that
// byte.
func (b *builder) writeFor(t Text, at int, s string) {
	b.writeText(Marked(s, t.origin(at)))
}

// escape writes a text and replaces bytes by their escapes.
func (b *builder) escape(t Text, escapes *[256]string) {
	from := 0
	for i := range len(t.Plain) {
		if s := escapes[t.Plain[i]]; s != "" {
			b.writePart(t, from, i)
			b.writeFor(t, i, s)
			from = i + 1
		}
	}
	b.writePart(t, from, len(t.Plain))
}

// write writes a value as {{ }} does.
func (r *run) write(b *builder, v any) {
	switch v := v.(type) {
	case string:
		b.write(v)
	case *Text:
		b.writeText(*v)
	case undefined:
	default:
		r.repr(b, v)
	}
}

// textOf returns the text that {{ }} writes for a value.
func (r *run) textOf(v any) Text {
	if t, ok := asText(v); ok {
		return t
	}
	b := &builder{m: &r.meter}
	r.write(b, v)
	return b.text()
}

// str returns the text that {{ }} writes for a value, without origins.
func (r *run) str(v any) string { return r.textOf(v).Plain }

// repr writes a value as Python's repr does.
func (r *run) repr(b *builder, v any) {
	r.enter()
	defer r.leave()
	switch v := v.(type) {
	case nil:
		b.write("None")
	case bool:
		b.write(map[bool]string{true: "True", false: "False"}[v])
	case int:
		b.write(strconv.Itoa(v))
	case float64:
		b.write(floatText(v))
	case string:
		quote(b, Text{Plain: v})
	case *Text:
		quote(b, *v)
	case *List:
		r.reprList(b, v)
	case *Dict:
		r.reprDict(b, v)
	case *namespace:
		b.write("<Namespace ")
		r.reprDict(b, &v.Dict)
		b.write(">")
	case undefined:
		b.write("Undefined")
	default:
		b.write("<function>")
	}
}

func (r *run) reprList(b *builder, l *List) {
	opening, closing := "[", "]"
	if l.tuple {
		opening, closing = "(", ")"
		if len(l.items) == 1 {
			closing = ",)"
		}
	}
	b.write(opening)
	for i, item := range l.items {
		if i > 0 {
			b.write(", ")
		}
		r.repr(b, item)
	}
	b.write(closing)
}

func (r *run) reprDict(b *builder, d *Dict) {
	b.write("{")
	for i, e := range d.entries {
		if i > 0 {
			b.write(", ")
		}
		r.repr(b, e.key)
		b.write(": ")
		r.repr(b, e.value)
	}
	b.write("}")
}

// quote writes a string as a Python literal.
func quote(b *builder, t Text) {
	mark, s := "'", t.Plain
	if strings.Contains(s, "'") && !strings.Contains(s, `"`) {
		mark = `"`
	}
	b.write(mark)
	for from := 0; from < len(s); {
		c, size := utf8.DecodeRuneInString(s[from:])
		text, at := s[from:from+size], from
		from += size
		switch {
		case text == mark || c == '\\':
			text = `\` + text
		case c == '\n':
			text = `\n`
		case c == '\r':
			text = `\r`
		case c == '\t':
			text = `\t`
		case c == utf8.RuneError && size == 1 || c < ' ' || c == 0x7f || c > 0x7f && !unicode.IsPrint(c) && c <= 0xff:
			text = `\x` + hexText(int(c), 2)
		case !unicode.IsPrint(c) && c <= 0xffff:
			text = `\u` + hexText(int(c), 4)
		case !unicode.IsPrint(c):
			text = `\U` + hexText(int(c), 8)
		}
		b.writeFor(t, at, text)
	}
	b.write(mark)
}

func hexText(n, digits int) string {
	s := strconv.FormatInt(int64(n), 16)
	return strings.Repeat("0", max(0, digits-len(s))) + s
}

// floatText formats a float as Python does: the shortest text that parses to the same value, with
// ".0" if it has no fraction.
func floatText(f float64) string {
	switch {
	case math.IsNaN(f):
		return "nan"
	case math.IsInf(f, 0):
		return strings.TrimPrefix(strings.ToLower(strconv.FormatFloat(f, 'g', -1, 64)), "+")
	}
	if a := math.Abs(f); f != 0 && (a < 1e-4 || a >= 1e16) {
		return strconv.FormatFloat(f, 'e', -1, 64)
	}
	s := strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}
