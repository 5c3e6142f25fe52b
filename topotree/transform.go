package topotree

import (
	"fmt"
	"strconv"
	"strings"
)

// Op names a transform.
type Op string

// The transforms. OpOnly is "each color alone": it keeps the PUs of one color.
const (
	OpGroup  Op = "group"
	OpRemove Op = "remove"
	OpOnly   Op = "only"
)

// Transform is one step from a tree to another, with the text forms group(n,t,d), remove(n,d),
// remove(n,d,color) and only(color). The root is depth 0.
//
// group(n,t,d): inside each parent at depth d-1, children are taken in blocks of n*t; the r-th new
// node of a block takes children r, r+t, r+2t, ..., n of them. New nodes stand at depth d and push
// the old ones down.
//
// remove(n,d): every node at depth d-1 (of the color, when one is named) loses its n right-most
// children.
type Transform struct {
	Op    Op
	N     int   // group: nodes taken together; remove: children that go
	T     int   // group: stride
	D     int   // group: depth of the new nodes; remove: depth of the children that go
	Color Color // remove: the color of the parents, "" for all; only: the color that stays
}

// Group returns group(n,t,d).
func Group(n, t, d int) Transform { return Transform{Op: OpGroup, N: n, T: t, D: d} }

// Remove returns remove(n,d), acting on every color.
func Remove(n, d int) Transform { return Transform{Op: OpRemove, N: n, D: d} }

// RemoveColor returns remove(n,d,color), acting on parents of one color.
func RemoveColor(n, d int, color Color) Transform {
	return Transform{Op: OpRemove, N: n, D: d, Color: color}
}

// Only returns only(color).
func Only(color Color) Transform { return Transform{Op: OpOnly, Color: color} }

// String returns the text form, which ParseTransform reads.
func (x Transform) String() string {
	switch {
	case x.Op == OpGroup:
		return fmt.Sprintf("group(%d,%d,%d)", x.N, x.T, x.D)
	case x.Op == OpOnly:
		return fmt.Sprintf("only(%s)", x.Color)
	case x.Color == "":
		return fmt.Sprintf("remove(%d,%d)", x.N, x.D)
	}
	return fmt.Sprintf("remove(%d,%d,%s)", x.N, x.D, x.Color)
}

// MarshalText writes the text form.
func (x Transform) MarshalText() ([]byte, error) { return []byte(x.String()), nil }

// UnmarshalText reads the text form.
func (x *Transform) UnmarshalText(text []byte) error {
	v, err := ParseTransform(string(text))
	if err != nil {
		return err
	}
	*x = v
	return nil
}

// ParseTransform reads group(n,t,d), remove(n,d), remove(n,d,color) or only(color).
func ParseTransform(text string) (Transform, error) {
	bad := func(why string) (Transform, error) {
		return Transform{}, fmt.Errorf("transform %q: %s", clip(text), why)
	}
	name, rest, ok := strings.Cut(strings.TrimSpace(text), "(")
	body, closed := strings.CutSuffix(rest, ")")
	if !ok || !closed {
		return bad("write group(n,t,d), remove(n,d), remove(n,d,color) or only(color)")
	}
	args := strings.Split(body, ",")
	x := Transform{Op: Op(strings.TrimSpace(name))}
	var numbers []*int
	switch {
	case x.Op == OpGroup && len(args) == 3:
		numbers = []*int{&x.N, &x.T, &x.D}
	case x.Op == OpRemove && (len(args) == 2 || len(args) == 3):
		numbers = []*int{&x.N, &x.D}
	case x.Op == OpOnly && len(args) == 1:
	default:
		return bad("write group(n,t,d), remove(n,d), remove(n,d,color) or only(color)")
	}
	for i, p := range numbers {
		n, err := strconv.Atoi(strings.TrimSpace(args[i]))
		if err != nil || n < 0 || n > MaxPUs {
			return bad(fmt.Sprintf("%q is not a number from 0 to %d", clip(args[i]), MaxPUs))
		}
		*p = n
	}
	if len(args) > len(numbers) {
		var err error
		if x.Color, err = parseColor(args[len(numbers)]); err != nil {
			return bad(err.Error())
		}
	}
	return x, x.check()
}

// check refuses arguments that fit no tree.
func (x Transform) check() error {
	switch {
	case x.Op == OpOnly:
		return nil
	case x.D < 1:
		return fmt.Errorf("%s: the depth must be at least 1, since the root is depth 0", x)
	case x.Op == OpGroup && (x.N < 2 || x.T < 1):
		return fmt.Errorf("%s: a group takes at least 2 nodes, with a stride of at least 1", x)
	case x.Op == OpRemove && x.N < 1:
		return fmt.Errorf("%s: remove takes at least 1 child away", x)
	case x.Op != OpGroup && x.Op != OpRemove:
		return fmt.Errorf("%s: no such transform", x)
	}
	return nil
}
