package device

import "strings"

// Class is a class of arithmetic that a device computes exactly or not.
type Class uint8

// The classes of arithmetic.
const (
	FMA          Class = iota // fused multiply-add, rounded once
	Product                   // multiplication and addition, each rounded
	Division                  // correctly rounded, subnormal numbers included
	SquareRoot                // correctly rounded, subnormal numbers included
	Subnormal                 // subnormal results and operands of products and sums
	SubnormalFMA              // subnormal results and operands of FMA
	IntegerDot                // dot products of signed bytes
	classes
)

// String returns the name of the class.
func (c Class) String() string {
	return [...]string{"fma", "product", "division", "square-root", "subnormal", "subnormal-fma", "integer-dot"}[c]
}

// Exactness is a set of classes.
type Exactness uint16

// AllExact has every class.
const AllExact Exactness = 1<<classes - 1

// Has reports whether the set has a class.
func (e Exactness) Has(c Class) bool { return e>>c&1 != 0 }

// With returns the set with a class added.
func (e Exactness) With(c Class) Exactness { return e | 1<<c }

// Names returns the names of the classes in the set.
func (e Exactness) Names() []string {
	names := []string{}
	for c := range classes {
		if e.Has(c) {
			names = append(names, c.String())
		}
	}
	return names
}

// String returns the names, or "all" or "none".
func (e Exactness) String() string {
	switch e {
	case AllExact:
		return "all"
	case 0:
		return "none"
	}
	return strings.Join(e.Names(), " ")
}
