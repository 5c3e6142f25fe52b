package jinja

import (
	"math"
	"strings"
	"unicode/utf8"
)

// Values are nil, bool, int, float64, string, *List and *Dict, and values that only templates
// create: undefined, *namespace and callables.

// List is a Python list or tuple.
type List struct {
	items []any
	tuple bool
}

// NewList returns a list of values.
func NewList(items ...any) *List { return &List{items: items} }

// Dict is a mapping that keeps the insertion order of its keys.
type Dict struct {
	index   map[any]int
	entries []dictEntry
}

type dictEntry struct{ key, value any }

// Set sets a value and returns d. It must not be called during a rendering.
func (d *Dict) Set(key string, value any) *Dict {
	d.put(key, value)
	return d
}

func (d *Dict) put(key, value any) {
	k := hashKey(key)
	if i, ok := d.index[k]; ok {
		d.entries[i].value = value
		return
	}
	if d.index == nil {
		d.index = make(map[any]int)
	}
	d.index[k] = len(d.entries)
	d.entries = append(d.entries, dictEntry{key, value})
}

// get returns the value of a key and whether d contains the key.
func (d *Dict) get(key any) (any, bool) {
	if i, ok := d.index[hashKey(key)]; ok {
		return d.entries[i].value, true
	}
	return nil, false
}

// drop removes a key.
func (d *Dict) drop(key any) {
	at, ok := d.index[hashKey(key)]
	if !ok {
		return
	}
	delete(d.index, hashKey(key))
	d.entries = append(d.entries[:at:at], d.entries[at+1:]...)
	for k, i := range d.index {
		if i > at {
			d.index[k] = i - 1
		}
	}
}

// hashKey maps keys that are equal in Python, such as 1, 1.0 and True, to the same key.
func hashKey(key any) any {
	switch k := key.(type) {
	case bool:
		return number(k)
	case float64:
		if k == math.Trunc(k) && math.Abs(k) < 1<<53 {
			return int(k)
		}
	case *List, *Dict:
		fail("a %s cannot be a key", typeName(key))
	case undefined:
		return undefined("")
	case *Text:
		return k.Plain
	case function:
		fail("a function cannot be a key")
	}
	return key
}

// payHash charges the steps for hashing a key.
func (m *meter) payHash(key any) {
	if s, ok := plain(key); ok {
		m.scan(len(s))
	} else {
		m.spend(1)
	}
}

// lookup charges for a look-up and does it.
func (m *meter) lookup(d *Dict, key any) (any, bool) {
	m.payHash(key)
	return d.get(key)
}

// put charges for an entry and sets it.
func (m *meter) put(d *Dict, key, value any) {
	m.payHash(key)
	before := len(d.entries)
	d.put(key, value)
	if len(d.entries) > before {
		m.take(entryBytes)
	}
}

// namespace is a mapping whose attributes templates can set.
type namespace struct{ Dict }

// undefined is the value of a name or an element that does not exist; it contains the reason. It is
// false, empty and prints as nothing; every other operation fails.
type undefined string

// strict fails if v is undefined.
func strict(v any) {
	if u, ok := v.(undefined); ok {
		fail("%s", clip(string(u), 120))
	}
}

func typeName(v any) string {
	switch v := v.(type) {
	case nil:
		return "None"
	case bool:
		return "bool"
	case int:
		return "int"
	case float64:
		return "float"
	case string, *Text:
		return "str"
	case *List:
		if v.tuple {
			return "tuple"
		}
		return "list"
	case *Dict:
		return "dict"
	case *namespace:
		return "namespace"
	case undefined:
		return "undefined value"
	}
	return "function"
}

// truth converts a value to bool as Python does.
func truth(v any) bool {
	switch v := v.(type) {
	case nil, undefined:
		return false
	case bool:
		return v
	case int:
		return v != 0
	case float64:
		return v != 0
	case string:
		return v != ""
	case *Text:
		return v.Plain != ""
	case *List:
		return len(v.items) > 0
	case *Dict:
		return len(v.entries) > 0
	}
	return true
}

// number returns v as an int or a float64, or nil if v is not a number. Booleans are numbers, as in
// Python.
func number(v any) any {
	switch v := v.(type) {
	case int, float64:
		return v
	case bool:
		if v {
			return 1
		}
		return 0
	}
	return nil
}

// iterate returns the elements of a value. The caller must not change the result.
func (m *meter) iterate(v any) []any {
	switch v := v.(type) {
	case undefined:
		return nil
	case *List:
		return v.items
	case *Dict:
		m.items(len(v.entries))
		keys := make([]any, len(v.entries))
		for i, e := range v.entries {
			keys[i] = e.key
		}
		return keys
	case string:
		return m.characters(Text{Plain: v})
	case *Text:
		return m.characters(*v)
	case *loop:
		return v.items
	}
	fail("a %s is not iterable", typeName(v))
	return nil
}

// characters returns the characters of a text as values.
func (m *meter) characters(t Text) []any {
	n := m.runes(t.Plain)
	m.items(2 * n) // an element and a string header for each
	list := make([]any, 0, n)
	for from := 0; from < len(t.Plain); {
		_, size := utf8.DecodeRuneInString(t.Plain[from:])
		list = append(list, m.cut(t, from, from+size).Value())
		from += size
	}
	return list
}

// runes returns the number of characters of a string.
func (m *meter) runes(s string) int {
	m.scan(len(s))
	return utf8.RuneCountInString(s)
}

func (m *meter) length(v any) int {
	switch v := v.(type) {
	case undefined:
		return 0
	case string:
		return m.runes(v)
	case *Text:
		return m.runes(v.Plain)
	case *List:
		return len(v.items)
	case *Dict:
		return len(v.entries)
	}
	fail("a %s has no length", typeName(v))
	return 0
}

// equal implements the operator ==.
func (m *meter) equal(a, b any) bool {
	m.spend(1)
	if x, y := number(a), number(b); x != nil && y != nil {
		return compareNumbers(x, y) == 0
	}
	switch a := a.(type) {
	case nil:
		return b == nil
	case undefined:
		_, ok := b.(undefined)
		return ok
	case string, *Text:
		return m.equalTexts(a, b)
	case *List:
		b, ok := b.(*List)
		if !ok || len(a.items) != len(b.items) || a.tuple != b.tuple {
			return false
		}
		m.enter()
		defer m.leave()
		for i := range a.items {
			if !m.equal(a.items[i], b.items[i]) {
				return false
			}
		}
		return true
	case *Dict:
		b, ok := b.(*Dict)
		return ok && m.equalDicts(a, b)
	case function:
		return false // each look-up creates a new method
	}
	return a == b
}

func (m *meter) equalTexts(a, b any) bool {
	s, _ := asText(a)
	t, ok := asText(b)
	m.scan(min(len(s.Plain), len(t.Plain)))
	if !ok || s.Plain != t.Plain {
		return false
	}
	m.found(s, t)
	m.found(t, s)
	return true
}

func (m *meter) equalDicts(a, b *Dict) bool {
	if len(a.entries) != len(b.entries) {
		return false
	}
	m.enter()
	defer m.leave()
	for _, e := range a.entries {
		if other, ok := m.lookup(b, e.key); !ok || !m.equal(e.value, other) {
			return false
		}
	}
	return true
}

// contains implements the operator in.
func (m *meter) contains(in, v any) bool {
	switch in := in.(type) {
	case string, *Text:
		text, _ := asText(in)
		part, ok := asText(v)
		if !ok {
			strict(v)
			fail("a str cannot contain a %s", typeName(v))
		}
		m.scan(len(text.Plain) + len(part.Plain))
		if !strings.Contains(text.Plain, part.Plain) {
			return false
		}
		m.found(text, part)
		return true
	case *Dict:
		_, ok := m.lookup(in, v)
		return ok
	}
	for _, item := range m.iterate(in) {
		if m.equal(item, v) {
			return true
		}
	}
	return false
}

// clip shortens text for an error message.
func clip(s string, most int) string {
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "..."
	}
	return s
}
