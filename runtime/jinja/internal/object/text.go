package object

import (
	"slices"
	"sort"
	"strings"
	"unicode"
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

// SpanBytes is the size of a Span in memory.
const SpanBytes = 24

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
		for i := range v.Items {
			v.Items[i] = Mark(v.Items[i], o)
		}
	case *Dict:
		for i, e := range v.Entries {
			v.Entries[i] = dictEntry{Mark(e.Key, o), Mark(e.Value, o)}
		}
	}
	return v
}

// AsText returns a string value with its spans; ok is false for other values.
func AsText(v any) (t Text, ok bool) {
	switch v := v.(type) {
	case string:
		return Text{Plain: v}, true
	case *Text:
		return *v, true
	}
	return Text{}, false
}

// Plain returns a string value without its spans; ok is false for other values.
func Plain(v any) (s string, ok bool) {
	switch v := v.(type) {
	case string:
		return v, true
	case *Text:
		return v.Plain, true
	}
	return "", false
}

// MapRunes applies a function to each character in order. The caller charges the result, which may
// be half as long again.
func MapRunes(t Text, change func(rune) rune) Text {
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

// ByteOffset returns the offset in bytes of character i of s, or len(s) if s is shorter.
func ByteOffset(s string, i int) int {
	from := 0
	for ; i > 0 && from < len(s); i-- {
		_, size := utf8.DecodeRuneInString(s[from:])
		from += size
	}
	return from
}

// IsText reports whether a value is a string.
func IsText(v any) bool {
	_, ok := Plain(v)
	return ok
}

// IsSpace reports whether Python's string methods treat r as white space.
func IsSpace(r rune) bool { return unicode.IsSpace(r) || r >= 0x1c && r <= 0x1f }
