// Package object holds the values of templates, their operators and their text, and the meter that
// limits the work and the memory of a rendering.
package object

import (
	"cmp"
	"math"
	"strings"
	"unicode/utf8"
)

// Values are nil, bool, int, float64, BigInt, string, *List and *Dict, and values that only
// templates create: undefined, *namespace and callables.

// List is a Python list, tuple or generator.
type List struct {
	Items     []any
	Tuple     bool
	Generator bool     // true even without elements, and no sequence
	Names     []string // attributes of a named tuple
}

// NewList returns a list of values.
func NewList(items ...any) *List { return &List{Items: items} }

// Dict is a mapping that keeps the insertion order of its keys.
type Dict struct {
	index   map[any]int
	Entries []dictEntry
}

type dictEntry struct{ Key, Value any }

// Set sets a value and returns d. It must not be called during a rendering.
func (d *Dict) Set(key string, value any) *Dict {
	d.put(key, value)
	return d
}

func (d *Dict) put(key, value any) {
	k := hashKey(key)
	if i, ok := d.index[k]; ok {
		d.Entries[i].Value = value
		return
	}
	if d.index == nil {
		d.index = make(map[any]int)
	}
	d.index[k] = len(d.Entries)
	d.Entries = append(d.Entries, dictEntry{key, value})
}

// get returns the value of a key and whether d contains the key.
func (d *Dict) get(key any) (any, bool) {
	if i, ok := d.index[hashKey(key)]; ok {
		return d.Entries[i].Value, true
	}
	return nil, false
}

// Drop removes a key.
func (d *Dict) Drop(key any) {
	at, ok := d.index[hashKey(key)]
	if !ok {
		return
	}
	delete(d.index, hashKey(key))
	d.Entries = append(d.Entries[:at:at], d.Entries[at+1:]...)
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
		return Number(k)
	case float64:
		if k == math.Trunc(k) && math.Abs(k) < 1<<53 {
			return int(k)
		}
	case *List, *Dict:
		Fail("a %s cannot be a key", TypeName(key))
	case Undefined:
		return Undefined("")
	case *Text:
		return k.Plain
	case opaque:
		Fail("a function cannot be a key")
	}
	return key
}

// payHash charges the steps for hashing a key.
func (m *Meter) payHash(key any) {
	if s, ok := Plain(key); ok {
		m.Scan(len(s))
	} else {
		m.Spend(1)
	}
}

// Lookup charges for a look-up and does it.
func (m *Meter) Lookup(d *Dict, key any) (any, bool) {
	m.payHash(key)
	return d.get(key)
}

// Element returns d[key].
func (m *Meter) Element(d *Dict, key any) any {
	if value, ok := m.Lookup(d, key); ok {
		return value
	}
	if s, ok := Plain(key); ok {
		return Undefined("missing key '" + Clip(s, 60) + "'")
	}
	return Undefined("missing key")
}

// Put charges for an entry and sets it.
func (m *Meter) Put(d *Dict, key, value any) {
	m.payHash(key)
	before := len(d.Entries)
	d.put(key, value)
	if len(d.Entries) > before {
		m.Take(EntryBytes)
	}
}

// Namespace is a mapping whose attributes templates can set.
type Namespace struct{ Dict }

// opaque is a value that cannot be compared or be a key, such as a function.
type opaque interface{ Opaque() }

// sequence is a value with elements that is not a list, a mapping or a string.
type sequence interface{ Elements() []any }

// Undefined is the value of a name or an element that does not exist; it contains the reason. It is
// false, empty and prints as nothing; every other operation fails.
type Undefined string

// Strict fails if v is undefined.
func Strict(v any) {
	if u, ok := v.(Undefined); ok {
		Fail("%s", Clip(string(u), 120))
	}
}

// TypeName returns the name of the type of a value for error messages.
func TypeName(v any) string {
	switch v := v.(type) {
	case nil:
		return "None"
	case bool:
		return "bool"
	case int, BigInt:
		return "int"
	case float64:
		return "float"
	case string, *Text:
		return "str"
	case *List:
		if v.Tuple {
			return "tuple"
		}
		return "list"
	case *Dict:
		return "dict"
	case *Namespace:
		return "namespace"
	case Undefined:
		return "undefined value"
	}
	return "function"
}

// Truth converts a value to bool as Python does.
func Truth(v any) bool {
	switch v := v.(type) {
	case nil, Undefined:
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
		return len(v.Items) > 0 || v.Generator
	case *Dict:
		return len(v.Entries) > 0
	}
	return true
}

// Number returns v as an int or a float64, or nil if v is not a number. Booleans are numbers, as in
// Python.
func Number(v any) any {
	switch v := v.(type) {
	case int, float64:
		return v
	case BigInt:
		return v.float()
	case bool:
		if v {
			return 1
		}
		return 0
	}
	return nil
}

// Iterate returns the elements of a value. The caller must not change the result.
func (m *Meter) Iterate(v any) []any {
	switch v := v.(type) {
	case Undefined:
		return nil
	case *List:
		return v.Items
	case *Dict:
		m.Items(len(v.Entries))
		keys := make([]any, len(v.Entries))
		for i, e := range v.Entries {
			keys[i] = e.Key
		}
		return keys
	case string:
		return m.Characters(Text{Plain: v})
	case *Text:
		return m.Characters(*v)
	case sequence:
		return v.Elements()
	}
	Fail("a %s is not iterable", TypeName(v))
	return nil
}

// Characters returns the characters of a text as values.
func (m *Meter) Characters(t Text) []any {
	n := m.Runes(t.Plain)
	m.Items(2 * n) // an element and a string header for each
	list := make([]any, 0, n)
	for from := 0; from < len(t.Plain); {
		_, size := utf8.DecodeRuneInString(t.Plain[from:])
		list = append(list, m.Cut(t, from, from+size).Value())
		from += size
	}
	return list
}

// Runes returns the number of characters of a string.
func (m *Meter) Runes(s string) int {
	m.Scan(len(s))
	return utf8.RuneCountInString(s)
}

// Length returns the number of elements, entries or characters of a value.
func (m *Meter) Length(v any) int {
	switch v := v.(type) {
	case Undefined:
		return 0
	case string:
		return m.Runes(v)
	case *Text:
		return m.Runes(v.Plain)
	case *List:
		return len(v.Items)
	case *Dict:
		return len(v.Entries)
	}
	Fail("a %s has no length", TypeName(v))
	return 0
}

// Equal implements the operator ==.
func (m *Meter) Equal(a, b any) bool {
	m.Spend(1)
	if x, y := Number(a), Number(b); x != nil && y != nil {
		return compareNumbers(x, y) == 0
	}
	switch a := a.(type) {
	case nil:
		return b == nil
	case Undefined:
		_, ok := b.(Undefined)
		return ok
	case string, *Text:
		return m.equalTexts(a, b)
	case *List:
		b, ok := b.(*List)
		if !ok || len(a.Items) != len(b.Items) || a.Tuple != b.Tuple {
			return false
		}
		m.Enter()
		defer m.Leave()
		for i := range a.Items {
			if !m.Equal(a.Items[i], b.Items[i]) {
				return false
			}
		}
		return true
	case *Dict:
		b, ok := b.(*Dict)
		return ok && m.equalDicts(a, b)
	case opaque:
		return false // each look-up creates a new method
	}
	return a == b
}

func (m *Meter) equalTexts(a, b any) bool {
	s, _ := AsText(a)
	t, ok := AsText(b)
	m.Scan(min(len(s.Plain), len(t.Plain)))
	if !ok || s.Plain != t.Plain {
		return false
	}
	m.Found(s, t)
	m.Found(t, s)
	return true
}

func (m *Meter) equalDicts(a, b *Dict) bool {
	if len(a.Entries) != len(b.Entries) {
		return false
	}
	m.Enter()
	defer m.Leave()
	for _, e := range a.Entries {
		if other, ok := m.Lookup(b, e.Key); !ok || !m.Equal(e.Value, other) {
			return false
		}
	}
	return true
}

// Contains implements the operator in.
func (m *Meter) Contains(in, v any) bool {
	switch in := in.(type) {
	case string, *Text:
		text, _ := AsText(in)
		part, ok := AsText(v)
		if !ok {
			Strict(v)
			Fail("a str cannot contain a %s", TypeName(v))
		}
		m.Scan(len(text.Plain) + len(part.Plain))
		if !strings.Contains(text.Plain, part.Plain) {
			return false
		}
		m.Found(text, part)
		return true
	case *Dict:
		_, ok := m.Lookup(in, v)
		return ok
	}
	for _, item := range m.Iterate(in) {
		if m.Equal(item, v) {
			return true
		}
	}
	return false
}

// Clip shortens text for an error message.
func Clip(s string, limit int) string {
	if len(s) > limit {
		s = strings.ToValidUTF8(s[:limit], "") + "..."
	}
	return s
}

func compareNumbers(a, b any) int {
	i, ok := a.(int)
	j, both := b.(int)
	if ok && both {
		return cmp.Compare(i, j)
	}
	return cmp.Compare(ToFloat(a), ToFloat(b))
}

// ToFloat returns an int or a float64 as a float64.
func ToFloat(n any) float64 {
	if i, ok := n.(int); ok {
		return float64(i)
	}
	return n.(float64)
}
