package gguf

import (
	"fmt"
	"slices"
	"strings"

	"sandwich/microkernel/qtype"
)

// Type is a ggml tensor type id, as stored in a GGUF file. Package qtype describes the supported
// types.
type Type uint32

// The tensor types this package reads.
const (
	F32    = Type(qtype.F32)
	F16    = Type(qtype.F16)
	Q4_0   = Type(qtype.Q4_0)
	Q4_1   = Type(qtype.Q4_1)
	Q5_0   = Type(qtype.Q5_0)
	Q5_1   = Type(qtype.Q5_1)
	Q8_0   = Type(qtype.Q8_0)
	Q2_K   = Type(qtype.Q2_K)
	Q3_K   = Type(qtype.Q3_K)
	Q4_K   = Type(qtype.Q4_K)
	Q5_K   = Type(qtype.Q5_K)
	Q6_K   = Type(qtype.Q6_K)
	IQ4_NL = Type(qtype.IQ4_NL)
	BF16   = Type(qtype.BF16)
)

// unread are the types that are known by name only. Ids without a name were withdrawn from the
// format before any file used them.
var unread = map[Type]string{
	4: "q4_2", 5: "q4_3", 9: "q8_1", 15: "q8_k",
	24: "i8", 25: "i16", 26: "i32", 27: "i64", 28: "f64", 31: "q4_0_4_4", 32: "q4_0_4_8", 33: "q4_0_8_8",
	36: "iq4_nl_4_4", 37: "iq4_nl_4_8", 38: "iq4_nl_8_8",
}

// Desc is the row of a type that is read, and nil for all others.
func (t Type) Desc() *qtype.Desc {
	if w := qtype.Type(t); Type(w) == t && w.Known() {
		return w.Desc()
	}
	return nil
}

// String returns the type's name in lower case, as flags and plan files write it: "q8_0", "bf16".
// An id this package has never heard of is "type 99".
func (t Type) String() string {
	if d := t.Desc(); d != nil {
		return d.Name
	}
	if n := unread[t]; n != "" {
		return n
	}
	return fmt.Sprintf("type %d", uint32(t))
}

// ParseType is the inverse of String for the types this package reads; case is ignored.
func ParseType(s string) (Type, error) {
	for _, w := range qtype.All() {
		if strings.EqualFold(s, w.String()) {
			return Type(w), nil
		}
	}
	return 0, fmt.Errorf("tensor type %q is not supported; use one of %s", s, strings.Join(typeNames(), ", "))
}

// typeNames lists the types this package reads, by name.
func typeNames() (names []string) {
	for _, w := range qtype.All() {
		names = append(names, w.String())
	}
	slices.Sort(names)
	return names
}

// Block returns the elements and bytes of one block of t: 1, 4 for f32 and 32, 34 for q8_0. Both
// are 0 for a type this package does not read.
func (t Type) Block() (elems, bytes int) {
	if d := t.Desc(); d != nil {
		return d.Block, d.Bytes
	}
	return 0, 0
}

// RowBytes returns the bytes of a row of k elements. k must be a multiple of the block's elements;
// for a type that is not read the result is 0.
func (t Type) RowBytes(k int) int {
	elems, bytes := t.Block()
	if elems == 0 {
		return 0
	}
	return k / elems * bytes
}
