package jinja

import (
	"slices"
	"sort"
	"strings"
	"unicode/utf8"
)

// Origin identifies the source of a part of a text. Callers number their sources from 1; 0 is the
// template.
type Origin int32

// Span is a range [From, To) of a text, in bytes, with an origin other than the template.
type Span struct {
	From, To int
	Origin   Origin
}

// Text is a string with the origins of its parts. Spans are in ascending order, not empty and do
// not overlap; bytes outside them come from the template. The spans of a Text must not be changed.
//
// The interpreter represents a string with spans as *Text and one without as string, so that text
// of the template costs no more than a string.
type Text struct {
	Plain string
	Spans []Span
}

// spanBytes is the size of a Span in memory.
const spanBytes = 24

// Marked returns a text from one source.
func Marked(plain string, o Origin) Text {
	if plain == "" || o == 0 {
		return Text{Plain: plain}
	}
	return Text{plain, []Span{{0, len(plain), o}}}
}

// Value returns the text as a template value: a string.
func (t Text) Value() any {
	if len(t.Spans) == 0 {
		return t.Plain
	}
	return &t
}

// Slice returns the bytes [from, to) with their origins.
func (t Text) Slice(from, to int) Text {
	part := Text{Plain: t.Plain[from:to]}
	if spans := t.within(from, to); len(spans) > 0 {
		part.Spans = shifted(nil, spans, from, to, -from)
	}
	return part
}

// within returns the spans that overlap the bytes [from, to).
func (t Text) within(from, to int) []Span {
	if len(t.Spans) == 0 || from >= to {
		return nil
	}
	first := sort.Search(len(t.Spans), func(i int) bool { return t.Spans[i].To > from })
	n := sort.Search(len(t.Spans)-first, func(i int) bool { return t.Spans[first+i].From >= to })
	return t.Spans[first : first+n]
}

// shifted appends spans to dst, clipped to the bytes [from, to) and shifted by the offset by. It
// joins adjacent spans of the same origin.
func shifted(dst, spans []Span, from, to, by int) []Span {
	for _, s := range spans {
		s.From, s.To = max(s.From, from)+by, min(s.To, to)+by
		if last := len(dst) - 1; last >= 0 && dst[last].To == s.From && dst[last].Origin == s.Origin {
			dst[last].To = s.To
		} else {
			dst = append(dst, s)
		}
	}
	return dst
}

// origin returns the origin of a byte.
func (t Text) origin(at int) Origin {
	for _, s := range t.within(at, at+1) {
		return s.Origin
	}
	return 0
}

// Mark sets the origin of every string in a value, including keys of mappings, and returns the
// value. It changes lists and mappings in place; no rendering may be using them.
func Mark(v any, o Origin) any {
	switch v := v.(type) {
	case string:
		return Marked(v, o).Value()
	case *List:
		for i := range v.items {
			v.items[i] = Mark(v.items[i], o)
		}
	case *Dict:
		for i, e := range v.entries {
			v.entries[i] = dictEntry{Mark(e.key, o), Mark(e.value, o)}
		}
	}
	return v
}

// asText returns a string value with its spans; ok is false for other values.
func asText(v any) (t Text, ok bool) {
	switch v := v.(type) {
	case string:
		return Text{Plain: v}, true
	case *Text:
		return *v, true
	}
	return Text{}, false
}

// plain returns a string value without its spans; ok is false for other values.
func plain(v any) (s string, ok bool) {
	switch v := v.(type) {
	case string:
		return v, true
	case *Text:
		return v.Plain, true
	}
	return "", false
}

// cut returns a slice of a text and charges its spans.
func (m *meter) cut(t Text, from, to int) Text {
	if len(t.Spans) == 0 {
		return Text{Plain: t.Plain[from:to]}
	}
	n := len(t.within(from, to))
	m.spend(1 + n/8)
	m.take(n * spanBytes)
	return t.Slice(from, to)
}

// concat returns a followed by b.
func (m *meter) concat(a, b Text) Text {
	size := len(a.Plain) + len(b.Plain)
	m.text(size)
	t := Text{Plain: a.Plain + b.Plain}
	if n := len(a.Spans) + len(b.Spans); n > 0 {
		m.spend(n / 8)
		m.take(max(0, n*spanBytes-size)) // the charge for the bytes covers the spans of ordinary texts
		t.Spans = append(make([]Span, 0, n), a.Spans...)
		t.Spans = shifted(t.Spans, b.Spans, 0, len(b.Plain), len(a.Plain))
	}
	return t
}

// mapRunes applies a function to each character in order. The caller charges the result, which may
// be half as long again.
func mapRunes(t Text, change func(rune) rune) Text {
	if len(t.Spans) == 0 {
		return Text{Plain: strings.Map(change, t.Plain)}
	}
	out := make([]byte, 0, len(t.Plain))
	spans := slices.Clone(t.Spans)
	next := 0 // boundary to move: twice the span's index, plus 1 for its end
	settle := func(read int) {
		for ; next < 2*len(spans); next++ {
			bound := &spans[next/2].From
			if next%2 == 1 {
				bound = &spans[next/2].To
			}
			if *bound > read {
				return
			}
			*bound = len(out)
		}
	}
	for i, c := range t.Plain {
		settle(i)
		if r := change(c); r >= 0 {
			out = utf8.AppendRune(out, r)
		}
	}
	settle(len(t.Plain))
	spans = slices.DeleteFunc(spans, func(s Span) bool { return s.From == s.To })
	return Text{string(out), spans}
}
