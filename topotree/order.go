package topotree

import (
	"fmt"
	"strings"

	"sandwich/internal/message"
)

// orderLevels sorts levels so that the objects of each are inside objects of the level above. It
// starts with the usual order and moves levels if the machine differs, for example an L3 that spans
// two NUMA nodes. If no order works, it splits the inner objects at the borders of the outer ones.
// It records each deviation and drops no PU.
func orderLevels(levels []levelSet) ([]levelSet, []Crossing) {
	var crossings []Crossing
	for i := 1; i < len(levels); i++ {
		for j := i; j > 0; j-- {
			above, below := levels[j-1], levels[j]
			if holds(above.objects, below.objects) || !holds(below.objects, above.objects) {
				break
			}
			if below.kind != KindGroup && above.kind != KindGroup { // groups have no usual level
				crossings = append(crossings, Crossing{
					Outer: below.kind, Inner: above.kind,
					Text: fmt.Sprintf("%s is above %s: %s", below.kind, above.kind, spanText(below, above)),
				})
			}
			levels[j-1], levels[j] = below, above
		}
	}
	for i := 1; i < len(levels); i++ {
		for j := range i {
			if holds(levels[j].objects, levels[i].objects) {
				continue
			}
			crossings = append(crossings, Crossing{
				Outer: levels[j].kind, Inner: levels[i].kind, Cut: true,
				Text: fmt.Sprintf("%s crosses %s and was split at its borders: %s", levels[i].kind, levels[j].kind,
					spanText(levels[i], levels[j])),
			})
			levels[i].objects = cut(levels[i].objects, levels[j].objects)
		}
	}
	return levels, crossings
}

// holds reports whether each inner object is inside one outer object or outside all of them.
func holds(outer, inner []Object) bool {
	owner := ownersOf(outer, lastOf(outer)+1)
	for _, in := range inner {
		first := true
		var of int
		for c := range in.CPUs.All() {
			o := -1
			if c < len(owner) {
				o = owner[c]
			}
			if !first && o != of {
				return false
			}
			first, of = false, o
		}
	}
	return true
}

func lastOf(objects []Object) int {
	last := -1
	for _, o := range objects {
		last = max(last, o.CPUs.Last())
	}
	return last
}

// spanText describes the first object of big that overlaps several objects of small.
func spanText(big, small levelSet) string {
	for _, b := range big.objects {
		var touched []string
		for _, s := range small.objects {
			if s.CPUs.Intersects(b.CPUs) {
				touched = append(touched, fmt.Sprint(s.ID))
			}
		}
		if len(touched) > 1 {
			return fmt.Sprintf("%s %d (CPUs %s) spans %d of kind %s, numbers %s",
				big.kind, b.ID, message.Clip(b.CPUs.String(), 60), len(touched), small.kind,
				message.Clip(strings.Join(touched, ", "), 60))
		}
	}
	return fmt.Sprintf("%s does not nest in %s", small.kind, big.kind)
}

// cut splits inner objects at the borders of outer ones. The parts keep the ID of their object.
func cut(inner, outer []Object) []Object {
	owner := ownersOf(outer, lastOf(outer)+1)
	var out []Object
	for _, in := range inner {
		rest := in.CPUs
		for c := range in.CPUs.All() {
			if !rest.Contains(c) {
				continue
			}
			piece := rest
			if c < len(owner) && owner[c] >= 0 {
				piece = rest.Intersect(outer[owner[c]].CPUs)
			} else {
				for _, o := range outer {
					piece = piece.Minus(o.CPUs)
				}
			}
			out = append(out, Object{Kind: in.Kind, ID: in.ID, CPUs: piece, Bytes: in.Bytes})
			rest = rest.Minus(piece)
		}
	}
	return out
}

// levelSet is one level of a new tree: its disjoint objects, limited to online PUs.
type levelSet struct {
	kind    Kind
	objects []Object
}

func ownersOf(objects []Object, size int) []int {
	owner := make([]int, size)
	for i := range owner {
		owner[i] = -1
	}
	for i, o := range objects {
		for c := range o.CPUs.All() {
			owner[c] = i
		}
	}
	return owner
}
