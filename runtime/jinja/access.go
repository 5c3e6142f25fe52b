package jinja

import "unicode/utf8"

// attribute returns v.name: a method of v, or its element with that name.
func (r *run) attribute(v any, name string) any {
	strict(v)
	switch v := v.(type) {
	case *loop:
		return v.attribute(name)
	case *namespace:
		return r.element(&v.Dict, name)
	case *macro:
		if name == "name" {
			return v.name
		}
	}
	if m := method(v, name); m != nil {
		return m
	}
	if d, ok := v.(*Dict); ok {
		return r.element(d, name)
	}
	return undefined("a " + typeName(v) + " has no attribute '" + name + "'")
}

// element returns d[key].
func (m *meter) element(d *Dict, key any) any {
	if value, ok := m.lookup(d, key); ok {
		return value
	}
	if s, ok := plain(key); ok {
		return undefined("missing key '" + clip(s, 60) + "'")
	}
	return undefined("missing key")
}

// item returns v[key].
func (r *run) item(v, key any) any {
	strict(v)
	if d, ok := v.(*Dict); ok {
		if value, ok := r.lookup(d, key); ok {
			return value
		}
	}
	if name, ok := plain(key); ok {
		return r.attribute(v, name)
	}
	i, ok := number(key).(int)
	if !ok {
		return undefined("index out of range")
	}
	switch v := v.(type) {
	case *List:
		if i < 0 {
			i += len(v.items)
		}
		if i >= 0 && i < len(v.items) {
			return v.items[i]
		}
	case string, *Text:
		text, _ := asText(v)
		return r.character(text, i)
	}
	return undefined("index out of range")
}

func (m *meter) character(t Text, i int) any {
	s := t.Plain
	n := m.runes(s)
	if i < 0 {
		i += n
	}
	if i < 0 || i >= n {
		return undefined("index out of range")
	}
	if n == len(s) {
		return m.cut(t, i, i+1).Value()
	}
	m.scan(4 * len(s)) // finding the offset decodes each character
	from := byteOffset(s, i)
	_, size := utf8.DecodeRuneInString(s[from:])
	return m.cut(t, from, from+size).Value()
}

// byteOffset returns the offset in bytes of character i of s, or len(s) if s is shorter.
func byteOffset(s string, i int) int {
	from := 0
	for ; i > 0 && from < len(s); i-- {
		_, size := utf8.DecodeRuneInString(s[from:])
		from += size
	}
	return from
}

// slice returns v[from:to:step].
func (r *run) slice(v any, bounds [3]any) any {
	strict(v)
	t, isText := asText(v)
	l, isList := v.(*List)
	if !isText && !isList {
		fail("a %s cannot be sliced", typeName(v))
	}
	from, to, step := sliceBounds(bounds, r.length(v))
	if isText {
		if step == 1 && r.runes(t.Plain) == len(t.Plain) {
			return r.cut(t, from, max(from, to)).Value()
		}
		if step == 1 {
			r.scan(8 * len(t.Plain))
			start := byteOffset(t.Plain, from)
			return r.cut(t, start, start+byteOffset(t.Plain[start:], to-from)).Value()
		}
		l = &List{items: r.characters(t)}
	}
	n := 0
	if step > 0 && to > from {
		n = (to-from-1)/step + 1
	} else if step < 0 && from > to {
		n = (from-to-1)/-step + 1
	}
	r.items(n)
	items := make([]any, n)
	for i := range items {
		items[i] = l.items[from+i*step]
	}
	if isText {
		return r.join(Text{}, items).Value()
	}
	return &List{items, l.tuple}
}

// sliceBounds resolves the bounds of a slice for a sequence of the given length, as Python does.
func sliceBounds(bounds [3]any, length int) (from, to, step int) {
	given := func(i, otherwise int) int {
		if bounds[i] == nil {
			return otherwise
		}
		strict(bounds[i])
		n, ok := number(bounds[i]).(int)
		if !ok {
			fail("a slice bound is not an integer")
		}
		return n
	}
	if step = given(2, 1); step == 0 {
		fail("a slice step cannot be 0")
	}
	step = max(step, -length-1)
	low, high := 0, length
	from, to = low, high
	if step < 0 {
		low, high = -1, length-1
		from, to = high, low
	}
	fit := func(i, otherwise int) int {
		if bounds[i] == nil {
			return otherwise
		}
		n := given(i, 0)
		if n < 0 {
			n += length
		}
		return min(max(n, low), high)
	}
	return fit(0, from), fit(1, to), step
}
