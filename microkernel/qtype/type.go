// Package qtype describes the types in which weights are stored, one row per type: the layout of a
// block in a file, the values of its numbers, and its layout in a packed panel. Readers, packers,
// kernels, heuristics and models read the row; none of them names a type. A type whose values,
// scales and codebook are of existing kinds is one row of table.go.
//
// The layouts in files are those of ggml (ggml-common.h, ggml-quants.c). The package imports no
// other package of the module.
package qtype

import (
	"fmt"
	"strings"
)

// Type is the type in which a weight matrix is stored. Its number is the ggml id, its name that of
// GGUF. The zero value is F32.
type Type uint8

// The types that are read, by ggml id.
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

	IQ2_XXS Type = 16
	IQ2_XS  Type = 17
	IQ3_XXS Type = 18
	IQ1_S   Type = 19
	IQ3_S   Type = 21
	IQ2_S   Type = 22
	IQ4_XS  Type = 23
	IQ1_M   Type = 29
	TQ1_0   Type = 34
	TQ2_0   Type = 35
	MXFP4   Type = 39
	NVFP4   Type = 40
	Q1_0    Type = 41
	Q2_0    Type = 42
)

var (
	table [256]Desc // by id; ids without a type have a row without a name
	all   []Type    // in the order in which they were added, which is the order of lists for users
)

// All lists the types, plain ones first.
func All() []Type { return all }

// Add makes the description d known as type t. It is for init functions and tests: no other
// function of this package may run at the same time.
func Add(t Type, d Desc) error {
	if table[t].Name != "" {
		return fmt.Errorf("weight type %s: id %d is that of %s", d.Name, uint8(t), table[t].Name)
	}
	if err := d.check(); err != nil {
		return fmt.Errorf("weight type %s: %w", d.Name, err)
	}
	d.packed = d.measure()
	table[t] = d
	all = append(all, t)
	return nil
}

// Desc returns the row of the type. The row of a type that is not Known is empty.
func (t Type) Desc() *Desc { return &table[t] }

// Known reports whether the type exists.
func (t Type) Known() bool { return table[t].Name != "" }

func (t Type) String() string {
	if t.Known() {
		return table[t].Name
	}
	return fmt.Sprintf("weight(%d)", uint8(t))
}

// Parse is the inverse of String. Its error lists the types that have kernels.
func Parse(s string) (Type, error) {
	var names []string
	for _, t := range all {
		if t.String() == s {
			return t, nil
		}
		names = append(names, t.String())
	}
	return 0, fmt.Errorf("no kernels for weight type %q (known: %s)", s, strings.Join(names, ", "))
}

// MarshalText and UnmarshalText let plan files spell a weight type by name.
func (t Type) MarshalText() ([]byte, error) {
	if !t.Known() {
		return nil, fmt.Errorf("weight type %s is unknown", t)
	}
	return []byte(t.String()), nil
}

// UnmarshalText parses the name of a weight type.
func (t *Type) UnmarshalText(b []byte) (err error) {
	*t, err = Parse(string(b))
	return err
}

// Quantized reports whether values share a scale per block.
func (t Type) Quantized() bool { return table[t].Block > 1 }

// Block returns the number of consecutive k of a quantization block: 1 for plain floats. K is a
// multiple of it, and so is every cut along k.
func (t Type) Block() int { return table[t].Block }

// KStep returns the number whose multiples are the possible cuts along k in the packed layout: the
// block, or 2 for floats packed in pairs.
func (t Type) KStep() int {
	if table[t].Float == Brain {
		return 2
	}
	return t.Block()
}

// RowBytes returns the length of a row of k elements in the raw GGUF tensor.
func (t Type) RowBytes(k int) int { return k / table[t].Block * table[t].Bytes }

// PanelOffset returns the byte offset of element k of a packed panel; k is a multiple of KStep.
func (t Type) PanelOffset(k int) int { return k / table[t].Block * table[t].PanelBytes() }
