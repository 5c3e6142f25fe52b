package kernel

import (
	"fmt"
	"slices"
	"strings"
)

// ISA is the instruction set a kernel is generated for. Extensions of it (VNNI, BF16) are Features.
// Plan files store its name, never its number.
type ISA uint8

// The instruction sets, narrow to wide within an architecture.
const (
	Go     ISA = iota // plain Go, everywhere
	AVX2              // amd64: AVX2, FMA3 and F16C
	AVX512            // amd64: AVX-512 F, BW, DQ and VL
	NEON              // arm64

	builtin // number of the instruction sets above
)

// targets are the registered targets, by ISA.
var targets = make([]*Target, builtin)

// Register sets the target of an instruction set. It is for package initialization: no other
// function of this package may run at the same time.
func Register(i ISA, t *Target) { targets[i] = t }

// RegisterNew adds an instruction set that has no constant in this package and returns its number.
// See Register.
func RegisterNew(t *Target) ISA {
	targets = append(targets, t)
	return ISA(len(targets) - 1)
}

// Target returns the target of an instruction set, or nil if none is registered.
func (i ISA) Target() *Target {
	if int(i) < len(targets) {
		return targets[i]
	}
	return nil
}

// registered lists the registered instruction sets in ascending order.
func registered() (out []ISA) {
	for i, t := range targets {
		if t != nil {
			out = append(out, ISA(i))
		}
	}
	return out
}

// String returns the name of the instruction set.
func (i ISA) String() string {
	if t := i.Target(); t != nil {
		return t.Name
	}
	return fmt.Sprintf("isa(%d)", uint8(i))
}

// ParseISA is the inverse of String. The error lists the known names.
func ParseISA(s string) (ISA, error) {
	var names []string
	for _, i := range registered() {
		if i.String() == s {
			return i, nil
		}
		names = append(names, i.String())
	}
	return Go, fmt.Errorf("unknown instruction set %q (known: %s)", s, strings.Join(names, ", "))
}

// MarshalText encodes an instruction set by its name.
func (i ISA) MarshalText() ([]byte, error) { return []byte(i.String()), nil }

// UnmarshalText parses the name of an instruction set.
func (i *ISA) UnmarshalText(b []byte) (err error) {
	*i, err = ParseISA(string(b))
	return err
}

// ISAs lists the instruction sets that the features allow, the widest first and Go last.
func (f Features) ISAs() []ISA {
	var out []ISA
	for _, i := range registered() {
		if f.Has(i.Target().Needs) {
			out = append(out, i)
		}
	}
	slices.SortStableFunc(out, func(a, b ISA) int { return b.Lanes() - a.Lanes() })
	return out
}

// Best returns the widest instruction set that the features allow, or Go.
func (f Features) Best() ISA {
	if list := f.ISAs(); len(list) > 0 {
		return list[0]
	}
	return Go
}

// Supports reports whether code for the instruction set runs with these features.
func (f Features) Supports(i ISA) bool {
	t := i.Target()
	return t != nil && f.Has(t.Needs)
}

// Lanes returns the number of float32 lanes of a vector register.
func (i ISA) Lanes() int {
	if t := i.Target(); t != nil {
		return t.Lanes
	}
	return 1
}

// Wider returns the instruction set with the longer vectors, i if both are equal.
func (i ISA) Wider(than ISA) ISA {
	if than.Lanes() > i.Lanes() {
		return than
	}
	return i
}

// Covers reports whether the vectors of i are at least as long as those of o.
func (i ISA) Covers(o ISA) bool { return i.Wider(o).Lanes() == i.Lanes() }

// Registers returns the number of vector registers that generated code may use, or 0 if i has no
// code generator.
func (i ISA) Registers() int {
	if t := i.Target(); t != nil {
		return t.Registers
	}
	return 0
}

// Generates reports whether i has a code generator. Without one, kernels are plain Go.
func (i ISA) Generates() bool { return i.Registers() > 0 }

// IntegerPorts returns the number of execution ports for integer vector arithmetic that heuristics
// assume.
func (i ISA) IntegerPorts() int { return i.Target().IntegerPorts }

// PrefersInt8 reports whether int8 products of weights with a number of bits are fast enough on a
// CPU to replace float32 products: they must keep up with memory for one row, and with float32 for
// many rows. It depends on the widest instruction set of the CPU.
func (f Features) PrefersInt8(bits int) bool {
	t := f.Best().Target()
	return f&t.Int8Dots != 0 || bits < t.Int8Bits
}

// HasMatrixUnit reports whether a CPU has a matrix unit for bytes.
func (f Features) HasMatrixUnit() bool {
	return slices.ContainsFunc(registered(), func(i ISA) bool { return f&i.Target().MatrixUnit != 0 })
}

// withForm names the instruction sets that have a form.
func withForm(f Form) string {
	var names []string
	for _, i := range registered() {
		if slices.Contains(i.Target().Forms, f) {
			names = append(names, i.String())
		}
	}
	return strings.Join(names, " and ")
}
