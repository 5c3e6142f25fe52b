package object

import "strings"

// Cut returns a slice of a text and charges its spans.
func (m *Meter) Cut(t Text, from, to int) Text {
	if len(t.Spans) == 0 {
		return Text{Plain: t.Plain[from:to]}
	}
	n := len(t.within(from, to))
	m.Spend(1 + n/8)
	m.Take(n * SpanBytes)
	return t.Slice(from, to)
}

// Concat returns a followed by b.
func (m *Meter) Concat(a, b Text) Text {
	size := len(a.Plain) + len(b.Plain)
	m.Text(size)
	t := Text{Plain: a.Plain + b.Plain}
	if n := len(a.Spans) + len(b.Spans); n > 0 {
		m.Spend(n / 8)
		m.Take(max(0, n*SpanBytes-size)) // the charge for the bytes covers the spans of ordinary texts
		t.Spans = append(make([]Span, 0, n), a.Spans...)
		t.Spans = shifted(t.Spans, b.Spans, 0, len(b.Plain), len(a.Plain))
	}
	return t
}

// Repeat returns n copies of s.
func (m *Meter) Repeat(s string, n int) string {
	n = max(0, n)
	if s == "" {
		return ""
	}
	if n > m.Limits.Text/len(s) {
		n = m.Limits.Text/len(s) + 1
	}
	m.Text(n * len(s))
	return strings.Repeat(s, n)
}
