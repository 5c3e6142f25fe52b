package library

import (
	"slices"
	"unicode/utf8"

	"sandwich/runtime/jinja/internal/object"
)

// attributes is a value whose attributes the interpreter defines.
type attributes interface{ Attribute(name string) any }

// Attribute returns v.name: a method of v, or its element with that name.
func (r *Run) Attribute(v any, name string) any {
	object.Strict(v)
	switch v := v.(type) {
	case attributes:
		return v.Attribute(name)
	case *object.Namespace:
		return r.Element(&v.Dict, name)
	}
	if m := method(v, name); m != nil {
		return m
	}
	switch v := v.(type) {
	case *object.Dict:
		return r.Element(v, name)
	case *object.List:
		if i := slices.Index(v.Names, name); i >= 0 {
			return v.Items[i]
		}
	}
	return object.Undefined("a " + object.TypeName(v) + " has no attribute '" + name + "'")
}

// Item returns v[key].
func (r *Run) Item(v, key any) any {
	object.Strict(v)
	if d, ok := v.(*object.Dict); ok {
		if value, ok := r.Lookup(d, key); ok {
			return value
		}
	}
	if name, ok := object.Plain(key); ok {
		return r.Attribute(v, name)
	}
	i, ok := object.Number(key).(int)
	if !ok {
		return object.Undefined("index out of range")
	}
	switch v := v.(type) {
	case *object.List:
		if i < 0 {
			i += len(v.Items)
		}
		if i >= 0 && i < len(v.Items) {
			return v.Items[i]
		}
	case string, *object.Text:
		text, _ := object.AsText(v)
		return r.character(text, i)
	}
	return object.Undefined("index out of range")
}

func (m *Run) character(t object.Text, i int) any {
	s := t.Plain
	n := m.Runes(s)
	if i < 0 {
		i += n
	}
	if i < 0 || i >= n {
		return object.Undefined("index out of range")
	}
	if n == len(s) {
		return m.Cut(t, i, i+1).Value()
	}
	m.Scan(4 * len(s)) // finding the offset decodes each character
	from := object.ByteOffset(s, i)
	_, size := utf8.DecodeRuneInString(s[from:])
	return m.Cut(t, from, from+size).Value()
}

// Slice returns v[from:to:step].
func (r *Run) Slice(v any, bounds [3]any) any {
	object.Strict(v)
	t, isText := object.AsText(v)
	l, isList := v.(*object.List)
	if !isText && !isList {
		object.Fail("a %s cannot be sliced", object.TypeName(v))
	}
	from, to, step := sliceBounds(bounds, r.Length(v))
	if isText {
		if step == 1 && r.Runes(t.Plain) == len(t.Plain) {
			return r.Cut(t, from, max(from, to)).Value()
		}
		if step == 1 {
			r.Scan(8 * len(t.Plain))
			start := object.ByteOffset(t.Plain, from)
			return r.Cut(t, start, start+object.ByteOffset(t.Plain[start:], to-from)).Value()
		}
		l = &object.List{Items: r.Characters(t)}
	}
	n := 0
	if step > 0 && to > from {
		n = (to-from-1)/step + 1
	} else if step < 0 && from > to {
		n = (from-to-1)/-step + 1
	}
	r.Items(n)
	items := make([]any, n)
	for i := range items {
		items[i] = l.Items[from+i*step]
	}
	if isText {
		return r.join(object.Text{}, items).Value()
	}
	return &object.List{Items: items, Tuple: l.Tuple}
}

// sliceBounds resolves the bounds of a slice for a sequence of the given length, as Python does.
func sliceBounds(bounds [3]any, length int) (from, to, step int) {
	given := func(i, otherwise int) int {
		if bounds[i] == nil {
			return otherwise
		}
		object.Strict(bounds[i])
		n, ok := object.Number(bounds[i]).(int)
		if !ok {
			object.Fail("a slice bound is not an integer")
		}
		return n
	}
	if step = given(2, 1); step == 0 {
		object.Fail("a slice step cannot be 0")
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

// join concatenates the texts of values, with between as separator.
func (r *Run) join(between object.Text, values []any) object.Text {
	out := &object.Builder{Meter: &r.Meter}
	for i, v := range values {
		if i > 0 {
			out.WriteText(between)
		}
		r.Print(out, v)
	}
	return out.Text()
}

// pairs returns the entries of a mapping as (key, value) tuples.
func (m *Run) pairs(d *object.Dict) []any {
	m.Items(4 * len(d.Entries))
	pairs := make([]any, len(d.Entries))
	for i, e := range d.Entries {
		pairs[i] = &object.List{Items: []any{e.Key, e.Value}, Tuple: true}
	}
	return pairs
}

// copy returns a copy of items.
func (m *Run) copy(items []any) []any {
	m.Items(len(items))
	return slices.Clone(items)
}
