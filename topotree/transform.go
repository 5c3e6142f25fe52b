package topotree

import (
	"fmt"
	"strconv"
	"strings"

	"sandwich/internal/message"
)

// Op is the name of a transform.
type Op string

// Transforms. OpOnly keeps the PUs of one color.
const (
	OpGroup  Op = "group"
	OpRemove Op = "remove"
	OpOnly   Op = "only"
)

// Transform is one step from a tree to another. Its text forms are group(n,t,d), remove(n,d),
// remove(n,d,color) and only(color). The root has depth 0.
//
// group(n,t,d): inside each parent at depth d-1, children are taken in blocks of n*t. The r-th new
// node of a block takes the n children r, r+t, r+2t and so on. New nodes have depth d, and the old
// ones move down.
//
// remove(n,d): every node at depth d-1, or those of a color, loses its last n children.
type Transform struct {
	Op    Op
	N     int   // group: nodes per group; remove: number of removed children
	T     int   // group: stride
	D     int   // group: depth of the new nodes; remove: depth of the removed children
	Color Color // remove: color of the parents, "" for all; only: color that is kept
}

// Group returns group(n,t,d).
func Group(n, t, d int) Transform { return Transform{Op: OpGroup, N: n, T: t, D: d} }

// Remove returns remove(n,d), which affects all colors.
func Remove(n, d int) Transform { return Transform{Op: OpRemove, N: n, D: d} }

// RemoveColor returns remove(n,d,color), which affects parents of one color.
func RemoveColor(n, d int, color Color) Transform {
	return Transform{Op: OpRemove, N: n, D: d, Color: color}
}

// Only returns only(color).
func Only(color Color) Transform { return Transform{Op: OpOnly, Color: color} }

// String returns the text form.
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

// MarshalText returns the text form.
func (x Transform) MarshalText() ([]byte, error) { return []byte(x.String()), nil }

// UnmarshalText parses the text form.
func (x *Transform) UnmarshalText(text []byte) error {
	v, err := ParseTransform(string(text))
	if err != nil {
		return err
	}
	*x = v
	return nil
}

// ParseTransform parses group(n,t,d), remove(n,d), remove(n,d,color) or only(color).
func ParseTransform(text string) (Transform, error) {
	bad := func(why string) (Transform, error) {
		return Transform{}, fmt.Errorf("transform %q: %s", message.Clip(text, 60), why)
	}
	name, rest, ok := strings.Cut(strings.TrimSpace(text), "(")
	body, closed := strings.CutSuffix(rest, ")")
	if !ok || !closed {
		return bad("use group(n,t,d), remove(n,d), remove(n,d,color) or only(color)")
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
		return bad("use group(n,t,d), remove(n,d), remove(n,d,color) or only(color)")
	}
	for i, p := range numbers {
		n, err := strconv.Atoi(strings.TrimSpace(args[i]))
		if err != nil || n < 0 || n > MaxPUs {
			return bad(fmt.Sprintf("%q is not a number from 0 to %d", message.Clip(args[i], 60), MaxPUs))
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

// check rejects arguments that fit no tree.
func (x Transform) check() error {
	switch {
	case x.Op == OpOnly:
		return nil
	case x.D < 1:
		return fmt.Errorf("%s: the depth must be at least 1, since the root is depth 0", x)
	case x.Op == OpGroup && (x.N < 2 || x.T < 1):
		return fmt.Errorf("%s: a group needs at least 2 nodes and a stride of at least 1", x)
	case x.Op == OpRemove && x.N < 1:
		return fmt.Errorf("%s: remove needs at least 1 child", x)
	case x.Op != OpGroup && x.Op != OpRemove:
		return fmt.Errorf("%s: unknown transform", x)
	}
	return nil
}
