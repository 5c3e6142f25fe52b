package object

import (
	"math"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Builder collects text with its origins, and charges for it.
type Builder struct {
	strings.Builder
	spans []Span
	Meter *Meter
}

// Text returns the collected text.
func (b *Builder) Text() Text { return Text{b.String(), b.spans} }

// Print writes text of the template.
func (b *Builder) Print(s string) {
	if len(s) > b.Meter.Limits.Text-b.Len() {
		b.Meter.stop("the template creates a text of more than %d bytes", b.Meter.Limits.Text)
	}
	b.Meter.Text(len(s))
	b.WriteString(s)
}

// WritePart writes the bytes [from, to) of t.
func (b *Builder) WritePart(t Text, from, to int) {
	at := b.Len()
	b.Print(t.Plain[from:to])
	if spans := t.within(from, to); len(spans) > 0 {
		b.Meter.Spend(len(spans) / 8)
		b.Meter.Take(len(spans) * SpanBytes)
		b.spans = shifted(b.spans, spans, from, to, at-from)
	}
}

// WriteText writes a text.
func (b *Builder) WriteText(t Text) { b.WritePart(t, 0, len(t.Plain)) }

// writeFor writes s as a replacement of one byte of t, such as its escape, with the origin of that
// byte.
func (b *Builder) writeFor(t Text, at int, s string) {
	b.WriteText(Marked(s, t.origin(at)))
}

// Escape writes a text and replaces bytes by their escapes.
func (b *Builder) Escape(t Text, escapes *[256]string) {
	from := 0
	for i := range len(t.Plain) {
		if s := escapes[t.Plain[i]]; s != "" {
			b.WritePart(t, from, i)
			b.writeFor(t, i, s)
			from = i + 1
		}
	}
	b.WritePart(t, from, len(t.Plain))
}

// Print writes a value as {{ }} does.
func (m *Meter) Print(b *Builder, v any) {
	switch v := v.(type) {
	case string:
		b.Print(v)
	case *Text:
		b.WriteText(*v)
	case Undefined:
	default:
		m.Repr(b, v)
	}
}

// TextOf returns the text that {{ }} writes for a value.
func (m *Meter) TextOf(v any) Text {
	if t, ok := AsText(v); ok {
		return t
	}
	b := &Builder{Meter: m}
	m.Print(b, v)
	return b.Text()
}

// Str returns the text that {{ }} writes for a value, without origins.
func (m *Meter) Str(v any) string { return m.TextOf(v).Plain }

// Repr writes a value as Python's repr does.
func (m *Meter) Repr(b *Builder, v any) {
	m.Enter()
	defer m.Leave()
	switch v := v.(type) {
	case nil:
		b.Print("None")
	case bool:
		if v {
			b.Print("True")
		} else {
			b.Print("False")
		}
	case int:
		b.Print(strconv.Itoa(v))
	case BigInt:
		b.Print(string(v))
	case float64:
		b.Print(floatText(v))
	case string:
		quote(b, Text{Plain: v})
	case *Text:
		quote(b, *v)
	case *List:
		m.reprList(b, v)
	case *Dict:
		m.reprDict(b, v)
	case *Namespace:
		b.Print("<Namespace ")
		m.reprDict(b, &v.Dict)
		b.Print(">")
	case Undefined:
		b.Print("Undefined")
	default:
		b.Print("<function>")
	}
}

func (m *Meter) reprList(b *Builder, l *List) {
	opening, closing := "[", "]"
	if l.Tuple {
		opening, closing = "(", ")"
		if len(l.Items) == 1 {
			closing = ",)"
		}
	}
	b.Print(opening)
	for i, item := range l.Items {
		if i > 0 {
			b.Print(", ")
		}
		m.Repr(b, item)
	}
	b.Print(closing)
}

func (m *Meter) reprDict(b *Builder, d *Dict) {
	b.Print("{")
	for i, e := range d.Entries {
		if i > 0 {
			b.Print(", ")
		}
		m.Repr(b, e.Key)
		b.Print(": ")
		m.Repr(b, e.Value)
	}
	b.Print("}")
}

// quote writes a string as a Python literal.
func quote(b *Builder, t Text) {
	mark, s := "'", t.Plain
	if strings.Contains(s, "'") && !strings.Contains(s, `"`) {
		mark = `"`
	}
	b.Print(mark)
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
	b.Print(mark)
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
