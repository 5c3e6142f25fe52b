package gguf

import (
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
)

// kind is the type id of a metadata value.
type kind uint32

const (
	kindU8 kind = iota
	kindI8
	kindU16
	kindI16
	kindU32
	kindI32
	kindF32
	kindBool
	kindString
	kindArray
	kindU64
	kindI64
	kindF64
)

var kindNames = [...]string{"uint8", "int8", "uint16", "int16", "uint32", "int32", "float32", "bool", "string", "array",
	"uint64", "int64", "float64"}

func (k kind) String() string {
	if int64(k) < int64(len(kindNames)) {
		return kindNames[k]
	}
	return fmt.Sprintf("value type %d", uint32(k))
}

// size returns the number of bytes of a scalar of kind k, or 0 for strings, arrays and unknown
// kinds.
func (k kind) size() int {
	switch k {
	case kindU8, kindI8, kindBool:
		return 1
	case kindU16, kindI16:
		return 2
	case kindU32, kindI32, kindF32:
		return 4
	case kindU64, kindI64, kindF64:
		return 8
	}
	return 0
}

// value is an encoded metadata value. raw is a part of the header: the bytes of a scalar or a
// string, or the elements of an array (strings with their lengths).
type value struct {
	kind  kind
	elem  kind // of an array
	count int  // of an array
	raw   []byte
}

// readValue reads the value of the named key and checks everything in it, so that the accessors
// below cannot fail.
func readValue(c *cursor, key string) value {
	at := c.pos
	v := value{kind: kind(c.u32("the value type of key " + show(key)))}
	what := "the value of key " + show(key)
	switch {
	case c.err != nil:
	case v.kind.size() > 0:
		v.raw = c.take(uint64(v.kind.size()), what)
	case v.kind == kindString:
		v.raw = c.str(what)
	case v.kind == kindArray:
		readArray(c, key, &v, 1)
	default:
		c.fail(ErrDamaged, at, "key %s has the unknown %s", show(key), v.kind)
	}
	return v
}

// maxArrayDepth limits the nesting of arrays, which no model needs.
const maxArrayDepth = 16

// readArray reads the element kind, count and elements of an array into v. depth is the number of
// arrays around its elements.
func readArray(c *cursor, key string, v *value, depth int) {
	at := c.pos
	what := "the array of key " + show(key)
	v.elem = kind(c.u32(what))
	switch {
	case c.err != nil:
		return
	case v.elem == kindArray:
		v.count = c.count("the length of "+what, 4+8)
		start := c.pos
		for range v.count {
			if depth >= maxArrayDepth {
				c.fail(ErrDamaged, at, "key %s nests arrays more than %d levels deep", show(key), maxArrayDepth)
			}
			if c.err != nil {
				return
			}
			readArray(c, key, &value{}, depth+1)
		}
		if c.err == nil {
			v.raw = c.data[start:c.pos:c.pos]
		}
		return
	case v.elem == kindString:
		v.count = c.count("the length of "+what, 8)
		start := c.pos
		skipStrings(c, v.count, key)
		if c.err == nil {
			v.raw = c.data[start:c.pos:c.pos]
		}
		return
	case v.elem.size() == 0:
		c.fail(ErrDamaged, at, "key %s holds an array of the unknown %s", show(key), v.elem)
		return
	}
	v.count = c.count("the length of "+what, uint64(v.elem.size()))
	v.raw = c.take(uint64(v.count)*uint64(v.elem.size()), what)
}

// skipStrings skips n strings and checks their lengths. It allocates nothing.
func skipStrings(c *cursor, n int, key string) {
	for i := range n {
		if c.remaining() < 8 {
			c.fail(ErrDamaged, c.pos, "key %s ends in element %d of %d", show(key), i, n)
		}
		if c.err != nil {
			return
		}
		size := binary.LittleEndian.Uint64(c.data[c.pos:])
		if size > c.remaining()-8 {
			c.fail(ErrDamaged, c.pos, "element %d of key %s says it is %d bytes long but only %d are left in "+
				"the file", i, show(key), size, c.remaining()-8)
			return
		}
		c.pos += 8 + int(size)
	}
}

// integer returns the i-th integer of kind k in raw, and its bits as a uint64. ok is false if k is
// no integer kind or the value does not fit int64.
func integer(k kind, raw []byte, i int) (v int64, bits uint64, ok bool) {
	switch le := binary.LittleEndian; k {
	case kindU8:
		v = int64(raw[i])
	case kindI8:
		v = int64(int8(raw[i]))
	case kindU16:
		v = int64(le.Uint16(raw[2*i:]))
	case kindI16:
		v = int64(int16(le.Uint16(raw[2*i:])))
	case kindU32:
		v = int64(le.Uint32(raw[4*i:]))
	case kindI32:
		v = int64(int32(le.Uint32(raw[4*i:])))
	case kindI64:
		v = int64(le.Uint64(raw[8*i:]))
	case kindU64:
		bits = le.Uint64(raw[8*i:])
		return int64(bits), bits, bits <= math.MaxInt64
	default:
		return 0, 0, false
	}
	return v, uint64(v), true
}

// float returns the i-th float of kind k in raw. ok is false if k is no float kind.
func float(k kind, raw []byte, i int) (v float64, ok bool) {
	switch k {
	case kindF32:
		return float64(math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:]))), true
	case kindF64:
		return math.Float64frombits(binary.LittleEndian.Uint64(raw[8*i:])), true
	}
	return 0, false
}

// text formats the value for people: a scalar in full, a string quoted, an array as its length and
// element kind.
func (v value) text() string {
	switch v.kind {
	case kindString:
		return strconv.Quote(string(v.raw))
	case kindArray:
		return fmt.Sprintf("%d x %s", v.count, v.elem)
	case kindBool:
		return strconv.FormatBool(v.raw[0] != 0)
	case kindU64:
		return strconv.FormatUint(binary.LittleEndian.Uint64(v.raw), 10)
	case kindF32:
		f, _ := float(v.kind, v.raw, 0)
		return strconv.FormatFloat(f, 'g', -1, 32)
	case kindF64:
		f, _ := float(v.kind, v.raw, 0)
		return strconv.FormatFloat(f, 'g', -1, 64)
	}
	i, _, _ := integer(v.kind, v.raw, 0)
	return strconv.FormatInt(i, 10)
}
