package gguf

import (
	"fmt"
	"strings"
)

// Type is a ggml tensor type id, as stored in a GGUF file.
type Type uint32

// The tensor types this package reads.
const (
	F32    Type = 0
	F16    Type = 1
	Q4_0   Type = 2
	Q4_1   Type = 3
	Q5_0   Type = 6
	Q5_1   Type = 7
	Q8_0   Type = 8
	Q2_K   Type = 10
	Q3_K   Type = 11
	Q4_K   Type = 12
	Q5_K   Type = 13
	Q6_K   Type = 14
	IQ4_NL Type = 20
	BF16   Type = 30
)

// typeInfo describes one type id; elems is 0 for a type that is known by name only.
type typeInfo struct {
	name  string
	elems int // elements of one block
	bytes int // bytes of one block
}

// types is indexed by type id. Ids without a name were withdrawn from the format before any file used them.
var types = [...]typeInfo{
	F32: {"f32", 1, 4}, F16: {"f16", 1, 2}, BF16: {"bf16", 1, 2},
	Q4_0: {"q4_0", 32, 18}, Q4_1: {"q4_1", 32, 20}, Q5_0: {"q5_0", 32, 22}, Q5_1: {"q5_1", 32, 24}, Q8_0: {"q8_0", 32, 34},
	Q2_K: {"q2_k", 256, 84}, Q3_K: {"q3_k", 256, 110}, Q4_K: {"q4_k", 256, 144}, Q5_K: {"q5_k", 256, 176}, Q6_K: {"q6_k", 256, 210},
	IQ4_NL: {"iq4_nl", 32, 18},

	4: {name: "q4_2"}, 5: {name: "q4_3"}, 9: {name: "q8_1"}, 15: {name: "q8_k"},
	16: {name: "iq2_xxs"}, 17: {name: "iq2_xs"}, 18: {name: "iq3_xxs"}, 19: {name: "iq1_s"}, 21: {name: "iq3_s"}, 22: {name: "iq2_s"},
	23: {name: "iq4_xs"}, 24: {name: "i8"}, 25: {name: "i16"}, 26: {name: "i32"}, 27: {name: "i64"}, 28: {name: "f64"}, 29: {name: "iq1_m"},
	31: {name: "q4_0_4_4"}, 32: {name: "q4_0_4_8"}, 33: {name: "q4_0_8_8"}, 34: {name: "tq1_0"}, 35: {name: "tq2_0"},
	36: {name: "iq4_nl_4_4"}, 37: {name: "iq4_nl_4_8"}, 38: {name: "iq4_nl_8_8"}, 39: {name: "mxfp4"}, 40: {name: "nvfp4"},
}

// info returns what is known about t; the zero typeInfo for an unknown id.
func (t Type) info() typeInfo {
	if int64(t) < int64(len(types)) {
		return types[t]
	}
	return typeInfo{}
}

// String returns the type's name in lower case, as flags and plan files write it: "q8_0", "bf16". An id this package has never heard of is "type 99".
func (t Type) String() string {
	if n := t.info().name; n != "" {
		return n
	}
	return fmt.Sprintf("type %d", uint32(t))
}

// ParseType is the inverse of String for the types this package reads; case is ignored.
func ParseType(s string) (Type, error) {
	var readable []string
	for id, inf := range types {
		if inf.elems == 0 {
			continue
		}
		if strings.EqualFold(s, inf.name) {
			return Type(id), nil
		}
		readable = append(readable, inf.name)
	}
	return 0, fmt.Errorf("tensor type %q is not supported; use one of %s", s, strings.Join(readable, ", "))
}

// Block returns the elements and bytes of one block of t: 1, 4 for f32 and 32, 34 for q8_0. Both are 0 for a type this package does not read.
func (t Type) Block() (elems, bytes int) {
	inf := t.info()
	return inf.elems, inf.bytes
}

// RowBytes returns the bytes of a row of k elements. k must be a multiple of the block's elements; for a type that is not read the result is 0.
func (t Type) RowBytes(k int) int {
	elems, bytes := t.Block()
	if elems == 0 {
		return 0
	}
	return k / elems * bytes
}
