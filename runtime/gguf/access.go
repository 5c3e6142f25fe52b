package gguf

import (
	"encoding/binary"
	"math"
)

// Keys returns the metadata keys in the order of the file.
func (f *File) Keys() []string { return append([]string(nil), f.keys...) }

// Text returns the value of key for a human reader: scalars in full, strings quoted, an array as
// "32000 x string". It is empty if the key is absent.
func (f *File) Text(key string) string {
	v, ok := f.meta[key]
	if !ok {
		return ""
	}
	return v.text()
}

// Encoded returns the value of key in a form that equals that of another file if and only if both
// values are equal; nil if the key is absent.
func (f *File) Encoded(key string) []byte {
	v, ok := f.meta[key]
	if !ok {
		return nil
	}
	return append([]byte{byte(v.kind), byte(v.elem)}, v.raw...)
}

// String returns the string under key; ok is false if the key is absent or no string.
func (f *File) String(key string) (s string, ok bool) {
	v, ok := f.meta[key]
	if !ok || v.kind != kindString {
		return "", false
	}
	return string(v.raw), true
}

// Architecture returns the value of general.architecture, "llama" for example, or "" if there is
// none.
func (f *File) Architecture() string {
	s, _ := f.String("general.architecture")
	return s
}

// Uint returns the integer of any width under key; ok is false if the key is absent, no integer, or
// negative.
func (f *File) Uint(key string) (u uint64, ok bool) {
	v, ok := f.meta[key]
	if !ok {
		return 0, false
	}
	if v.kind == kindU64 {
		return binary.LittleEndian.Uint64(v.raw), true
	}
	i, u, ok := integer(v.kind, v.raw, 0)
	if !ok || i < 0 {
		return 0, false
	}
	return u, true
}

// Int returns the integer of any width under key; ok is false if the key is absent, no integer, or
// above the range of int64.
func (f *File) Int(key string) (i int64, ok bool) {
	v, ok := f.meta[key]
	if !ok {
		return 0, false
	}
	i, _, ok = integer(v.kind, v.raw, 0)
	if !ok {
		return 0, false
	}
	return i, true
}

// Float returns the float32 or float64 under key; ok is false if the key is absent or no float.
func (f *File) Float(key string) (x float64, ok bool) {
	v, ok := f.meta[key]
	if !ok {
		return 0, false
	}
	return float(v.kind, v.raw, 0)
}

// Bool returns the bool under key; ok is false if the key is absent or no bool.
func (f *File) Bool(key string) (b, ok bool) {
	v, ok := f.meta[key]
	if !ok || v.kind != kindBool {
		return false, false
	}
	return v.raw[0] != 0, true
}

// Count returns the number of elements of the array under key, 0 where there is none.
func (f *File) Count(key string) int { return f.meta[key].count }

// Strings returns the array of strings under key; ok is false if the key is absent or something
// else. The strings are a copy and outlive the file; each call copies anew, so callers keep what
// they get.
func (f *File) Strings(key string) (s []string, ok bool) {
	v, ok := f.meta[key]
	if !ok || v.kind != kindArray || v.elem != kindString {
		return nil, false
	}
	// One copy of the whole region, lengths included, and slices of it: two allocations for any
	// vocabulary.
	all := string(v.raw)
	s = make([]string, v.count)
	pos := 0
	for i := range s {
		n := int(binary.LittleEndian.Uint64(v.raw[pos:]))
		s[i] = all[pos+8 : pos+8+n]
		pos += 8 + n
	}
	return s, true
}

// Floats returns the array of floats under key, as float32; ok is false if the key is absent or
// something else.
func (f *File) Floats(key string) (x []float32, ok bool) {
	v, ok := f.meta[key]
	if !ok || v.kind != kindArray || (v.elem != kindF32 && v.elem != kindF64) {
		return nil, false
	}
	x = make([]float32, v.count)
	for i := range x {
		e, _ := float(v.elem, v.raw, i)
		x[i] = float32(e)
	}
	return x, true
}

// Ints returns the array of integers (of any width) or bools under key; ok is false if the key is
// absent, something else, or an element does not fit int32.
func (f *File) Ints(key string) (x []int32, ok bool) {
	v, ok := f.meta[key]
	if !ok || v.kind != kindArray {
		return nil, false
	}
	k := v.elem
	if k == kindBool {
		k = kindU8
	}
	if k > kindI64 || k == kindF32 || k == kindString {
		return nil, false
	}
	x = make([]int32, v.count)
	for i := range x {
		e, _, ok := integer(k, v.raw, i)
		if !ok || e < math.MinInt32 || e > math.MaxInt32 {
			return nil, false
		}
		x[i] = int32(e)
	}
	return x, true
}
